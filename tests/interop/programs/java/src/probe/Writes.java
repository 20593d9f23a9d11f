package probe;

import com.alibaba.fastjson.JSON;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingConnectException;

/**
 * Writes numbered messages to queues, one at a time each, until a file is there that says to stop;
 * logs when each send began and ended and what became of it. The writer of tests/chaos.
 */
final class Writes {
    private static final int SEND_TIMEOUT_MS = 3_000;
    private static final int PAUSE_MS = 5;
    private static final int BACKOFF_MS = 50;
    /** Codes that a broker answers before it writes; any other may come after a write. */
    private static final Set<Integer> CERTAIN_REFUSALS = Set.of(2, 13, 14, 16, 17);

    private Writes() {
    }

    static void register(Map<String, Probe.Verb> verbs) {
        verbs.put("write", Writes::write);
    }

    private static void write(Args args) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("chaos_java");
        producer.setNamesrvAddr(args.namesrv());
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        producer.start();
        List<Thread> threads = new ArrayList<>();
        try (PrintWriter log = new PrintWriter(Files.newBufferedWriter(Path.of(args.text("log"))))) {
            for (String queue : args.texts("queues")) {
                Thread thread = new Thread(() -> writeQueue(producer, args, Integer.parseInt(queue), log));
                thread.start();
                threads.add(thread);
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        producer.shutdown();
    }

    private static void writeQueue(DefaultMQProducer producer, Args args, int queue, PrintWriter log) {
        Path stop = Path.of(args.text("stop"));
        MessageQueue target = new MessageQueue(args.topic(), args.text("broker"), queue);
        for (int number = 0; !Files.exists(stop); number++) {
            String name = args.text("writer") + "/" + queue + "/" + number;
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("writer", args.text("writer"));
            line.put("queue", queue);
            line.put("number", number);
            line.put("began", seconds());
            String why = "";
            try {
                Message message = new Message(args.topic(), name.getBytes(StandardCharsets.UTF_8));
                // To a queue that is named a message is sent once: nothing is tried again.
                line.put("status", producer.send(message, target).getSendStatus().name());
            } catch (Exception failure) {
                why = failure.toString();
                line.put("status", isCertain(failure) ? "failed" : "unknown");
            }
            line.put("ended", seconds());
            line.put("why", why);
            append(log, line);
            pause(why.isEmpty() ? PAUSE_MS : BACKOFF_MS);
        }
    }

    /** Whether the message is not stored for sure: nobody could be asked, or it was refused. */
    private static boolean isCertain(Exception failure) {
        if (failure instanceof MQBrokerException) {
            return CERTAIN_REFUSALS.contains(((MQBrokerException) failure).getResponseCode());
        }
        Throwable cause = failure.getCause();
        return failure instanceof RemotingConnectException || cause instanceof RemotingConnectException
            || failure instanceof MQClientException && cause == null;
    }

    /** The machine's monotonic clock, as other processes read it. */
    private static double seconds() {
        return System.nanoTime() / 1e9;
    }

    private static synchronized void append(PrintWriter log, Map<String, Object> line) {
        log.println(JSON.toJSONString(line));
        log.flush();
    }

    private static void pause(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
