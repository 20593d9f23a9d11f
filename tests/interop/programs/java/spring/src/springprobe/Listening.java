package springprobe;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;

/** Counts what the listeners got, until it is enough. */
@Component
@Profile("listen")
class Listening implements Application.Work {
    private static final long LINGER_MS = 500;

    private final CountDownLatch missing;
    private final long timeout;

    Listening(@Value("${probe.expected}") int expected, @Value("${probe.timeout}") long timeout) {
        missing = new CountDownLatch(expected);
        this.timeout = timeout;
    }

    void arrived(Map<String, Object> fields) {
        Lines.print("message", fields);
        missing.countDown();
    }

    @Override
    public Void call() throws InterruptedException {
        Lines.print("ready", Map.of());
        if (!missing.await(timeout, TimeUnit.SECONDS)) {
            throw new IllegalStateException(missing.getCount() + " messages did not come in time");
        }
        // An answer leaves after its question was counted.
        Thread.sleep(LINGER_MS);
        return null;
    }
}
