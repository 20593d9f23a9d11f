package probe;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.exception.RemotingException;

/** The verbs that send. */
final class Sends {
    private static final int SEND_TIMEOUT_MS = 10_000;

    private Sends() {
    }

    static void register(Map<String, Probe.Verb> verbs) {
        verbs.put("send-sync", Sends::sync);
        verbs.put("send-async", Sends::async);
        verbs.put("send-oneway", Sends::oneway);
        verbs.put("send-batch", Sends::batch);
        verbs.put("recall", Sends::recall);
    }

    private static void sync(Args args) throws Exception {
        DefaultMQProducer producer = started(new DefaultMQProducer(group(args), args.signer(), args.yes("trace"), null), args);
        int shards = args.number("shards", 0);
        List<Message> messages = Messages.of(args);
        for (int i = 0; i < messages.size(); i++) {
            int index = i;
            Lines.sent(i, again(args, i, () -> shards == 0
                ? producer.send(messages.get(index))
                : producer.send(messages.get(index), (queues, message, key) ->
                    queues.get((Integer) key % queues.size()), index % shards)));
            Thread.sleep(args.number("pauseMs", 0));
        }
        Lines.done(messages.size());
        // What a producer traces leaves later, on another thread, and is lost by an early shutdown.
        Thread.sleep(args.number("lingerMs", 0));
        producer.shutdown();
    }

    /** As an application does that has to get its message through: {@code againMs} later once more, until time is up. */
    private static SendResult again(Args args, int index, Callable<SendResult> send) throws Exception {
        int againMs = args.number("againMs", 0);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(args.timeoutSeconds());
        while (true) {
            try {
                return send.call();
            } catch (MQClientException | MQBrokerException | RemotingException failure) {
                if (againMs == 0 || System.nanoTime() > end) {
                    throw failure;
                }
                Lines.print("unsent", Map.of("index", index));
                Thread.sleep(againMs);
            }
        }
    }

    private static void async(Args args) throws Exception {
        DefaultMQProducer producer = started(new DefaultMQProducer(group(args), args.signer()), args);
        List<Message> messages = Messages.of(args);
        CountDownLatch left = new CountDownLatch(messages.size());
        AtomicReference<Throwable> failed = new AtomicReference<>();
        for (int i = 0; i < messages.size(); i++) {
            int index = i;
            producer.send(messages.get(i), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    Lines.sent(index, result);
                    left.countDown();
                }

                @Override
                public void onException(Throwable failure) {
                    failed.set(failure);
                    left.countDown();
                }
            });
        }
        if (!left.await(args.timeoutSeconds(), TimeUnit.SECONDS)) {
            throw new IllegalStateException(left.getCount() + " sends were never answered");
        }
        if (failed.get() != null) {
            throw new IllegalStateException(failed.get());
        }
        Lines.done(messages.size());
        producer.shutdown();
    }

    private static void oneway(Args args) throws Exception {
        DefaultMQProducer producer = started(new DefaultMQProducer(group(args), args.signer()), args);
        List<Message> messages = Messages.of(args);
        for (Message message : messages) {
            producer.sendOneway(message);
        }
        // One answered send on the same connection: what was sent before it has left by then.
        Message last = new Message(args.topic(), "fence", "fence".getBytes(StandardCharsets.UTF_8));
        Lines.sent(messages.size(), producer.send(last));
        Lines.done(messages.size());
        producer.shutdown();
    }

    private static void batch(Args args) throws Exception {
        DefaultMQProducer producer = started(new DefaultMQProducer(group(args), args.signer()), args);
        List<Message> messages = Messages.of(args);
        Lines.sent(0, producer.send(messages));
        Lines.done(messages.size());
        producer.shutdown();
    }

    /** Takes back messages that wait for their time; only clients of 5.x can. */
    private static void recall(Args args) throws Exception {
        DefaultMQProducer producer = started(new DefaultMQProducer(group(args), args.signer()), args);
        for (String handle : args.texts("handles")) {
            Object id = Newer.call(producer, "recallMessage", args.topic(), handle);
            Lines.print("recalled", Map.of("msgId", String.valueOf(id)));
        }
        producer.shutdown();
        Lines.done(args.texts("handles").size());
    }

    private static String group(Args args) {
        return args.text("producer", "probe_producer");
    }

    static <P extends DefaultMQProducer> P started(P producer, Args args) throws MQClientException {
        producer.setNamesrvAddr(args.namesrv());
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        producer.start();
        return producer;
    }
}
