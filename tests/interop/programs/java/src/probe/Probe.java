package probe;

import com.alibaba.fastjson.JSON;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/**
 * One verb of a real RocketMQ client a run: {@code Probe VERB JSON}. What happened is printed as
 * JSON lines; the exit code is 0 when the verb did all it was asked to do.
 *
 * <p>{@code Probe serve} takes one verb and its JSON a line from stdin, until stdin ends, and prints
 * an "end" line after each: the same verbs without the start of a virtual machine for each.
 */
public final class Probe {
    /** What a verb may take beyond its own time limit before the process is ended by force. */
    private static final int GRACE_SECONDS = 20;

    interface Verb {
        void run(Args args) throws Exception;
    }

    private static final Map<String, Verb> VERBS = new TreeMap<>();

    static {
        Sends.register(VERBS);
        Transactions.register(VERBS);
        Requests.register(VERBS);
        Consumes.register(VERBS);
        Pulls.register(VERBS);
        Admin.register(VERBS);
        Tools.register(VERBS);
        Writes.register(VERBS);
    }

    private Probe() {
    }

    public static void main(String[] argv) throws IOException {
        Lines.claimStdout();
        if (argv.length == 1 && argv[0].equals("serve")) {
            serve();
            System.exit(0);
        }
        if (argv.length != 2 || !VERBS.containsKey(argv[0])) {
            System.err.println("usage: Probe serve | " + String.join("|", VERBS.keySet()) + " JSON");
            System.exit(2);
        }
        Args args = new Args(JSON.parseObject(argv[1]));
        endByForceAfter(args.timeoutSeconds() + GRACE_SECONDS);
        System.exit(run(argv[0], args));
    }

    private static void serve() throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split(" ", 2);
            int status = run(parts[0], new Args(JSON.parseObject(parts[1])));
            Lines.print("end", Map.of("status", status));
        }
    }

    private static int run(String verb, Args args) {
        try {
            VERBS.get(verb).run(args);
            return 0;
        } catch (Throwable failure) {
            failure.printStackTrace();
            Lines.error(failure);
            return 1;
        }
    }

    private static void endByForceAfter(int seconds) {
        Thread watchdog = new Thread(() -> {
            try {
                Thread.sleep(seconds * 1000L);
            } catch (InterruptedException stopped) {
                return;
            }
            System.err.println("the verb took longer than " + seconds + " s");
            Runtime.getRuntime().halt(3);
        });
        watchdog.setDaemon(true);
        watchdog.start();
    }
}
