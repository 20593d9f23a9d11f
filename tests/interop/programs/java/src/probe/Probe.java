package probe;

import com.alibaba.fastjson.JSON;
import java.util.Map;
import java.util.TreeMap;

/**
 * One verb of a real RocketMQ client a run: {@code Probe VERB JSON}. What happened is printed as
 * JSON lines; the exit code is 0 when the verb did all it was asked to do.
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
        Consumes.register(VERBS);
        Pulls.register(VERBS);
        Admin.register(VERBS);
    }

    private Probe() {
    }

    public static void main(String[] argv) {
        Lines.claimStdout();
        Verb verb = argv.length == 2 ? VERBS.get(argv[0]) : null;
        if (verb == null) {
            System.err.println("usage: Probe " + String.join("|", VERBS.keySet()) + " JSON");
            System.exit(2);
            return;
        }
        Args args = new Args(JSON.parseObject(argv[1]));
        endByForceAfter(args.timeoutSeconds() + GRACE_SECONDS);
        int status = 0;
        try {
            verb.run(args);
        } catch (Throwable failure) {
            failure.printStackTrace();
            Lines.error(failure);
            status = 1;
        }
        System.exit(status);
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
