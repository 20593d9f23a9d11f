package probe;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** RocketMQ's own command line: {@code mqadmin} with its arguments; the result is what it printed. */
final class Tools {
    private Tools() {
    }

    static void register(Map<String, Probe.Verb> verbs) {
        verbs.put("mqadmin", Tools::mqadmin);
    }

    private static void mqadmin(Args args) throws Exception {
        List<String> words = new ArrayList<>(args.texts("words"));
        words.add("-n");
        words.add(args.namesrv());
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream before = System.out;
        PrintStream errors = System.err;
        try (PrintStream capture = new PrintStream(printed, true, StandardCharsets.UTF_8)) {
            System.setOut(capture);
            // A command that failed prints its trace and goes on: the caller should see it.
            System.setErr(capture);
            forgetCommands();
            MQAdminStartup.main0(words.toArray(new String[0]), null);
        } finally {
            System.setOut(before);
            System.setErr(errors);
        }
        Lines.result(printed.toString(StandardCharsets.UTF_8));
    }

    /** Some commands keep a client for good: meant for one run of a virtual machine, not for many. */
    private static void forgetCommands() throws IllegalAccessException {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }
}
