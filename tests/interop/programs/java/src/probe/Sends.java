package probe;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

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
        verbs.put("send-transaction", Sends::transaction);
    }

    private static void sync(Args args) throws Exception {
        DefaultMQProducer producer = started(new DefaultMQProducer(group(args)), args);
        int shards = args.number("shards", 0);
        List<Message> messages = messages(args);
        for (int i = 0; i < messages.size(); i++) {
            SendResult result = shards == 0
                ? producer.send(messages.get(i))
                : producer.send(messages.get(i), (queues, message, key) ->
                    queues.get((Integer) key % queues.size()), i % shards);
            Lines.sent(i, result);
        }
        Lines.done(messages.size());
        producer.shutdown();
    }

    private static void async(Args args) throws Exception {
        DefaultMQProducer producer = started(new DefaultMQProducer(group(args)), args);
        List<Message> messages = messages(args);
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
        DefaultMQProducer producer = started(new DefaultMQProducer(group(args)), args);
        List<Message> messages = messages(args);
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
        DefaultMQProducer producer = started(new DefaultMQProducer(group(args)), args);
        List<Message> messages = messages(args);
        Lines.sent(0, producer.send(messages));
        Lines.done(messages.size());
        producer.shutdown();
    }

    /**
     * Messages 0, 3, 6... are committed at once, 1, 4... rolled back, 2, 5... committed when checked.
     * A broker may check any message that it has not marked as decided yet: the answer is the same.
     */
    private static void transaction(Args args) throws Exception {
        List<Message> messages = messages(args);
        Set<Integer> undecided = ConcurrentHashMap.newKeySet();
        CountDownLatch checks = new CountDownLatch(messages.size() / 3);
        TransactionMQProducer producer = new TransactionMQProducer(group(args));
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object index) {
                if ((Integer) index % 3 == 2) {
                    undecided.add((Integer) index);
                    return LocalTransactionState.UNKNOW;
                }
                return decided((Integer) index);
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                Lines.print("checked", Lines.fields(message));
                String body = new String(message.getBody(), StandardCharsets.UTF_8);
                int index = Integer.parseInt(body.substring(body.lastIndexOf('-') + 1));
                if (undecided.remove(index)) {
                    checks.countDown();
                }
                return decided(index);
            }

            private LocalTransactionState decided(int index) {
                return index % 3 == 1
                    ? LocalTransactionState.ROLLBACK_MESSAGE
                    : LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        started(producer, args);
        for (int i = 0; i < messages.size(); i++) {
            Lines.sent(i, producer.sendMessageInTransaction(messages.get(i), i));
        }
        if (!checks.await(args.timeoutSeconds(), TimeUnit.SECONDS)) {
            throw new IllegalStateException(checks.getCount() + " transactions were never checked");
        }
        Lines.done(messages.size());
        // The outcome of a check leaves on another thread, one-way, and a broker that did not take
        // it checks again: stay reachable for a while.
        Thread.sleep(args.number("lingerMs", 5000));
        producer.shutdown();
    }

    private static String group(Args args) {
        return args.text("group", "probe_producer");
    }

    private static <P extends DefaultMQProducer> P started(P producer, Args args) throws MQClientException {
        producer.setNamesrvAddr(args.namesrv());
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        producer.start();
        return producer;
    }

    private static List<Message> messages(Args args) {
        int count = args.number("count", 1);
        int shards = args.number("shards", 0);
        List<String> tags = args.texts("tags");
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Message message = new Message(args.topic(), body(args, i, shards));
            if (!tags.isEmpty()) {
                message.setTags(tags.get(i % tags.size()));
            }
            if (args.text("keys", null) != null) {
                message.setKeys(args.text("keys") + i);
            }
            if (args.number("delayLevel", 0) > 0) {
                message.setDelayTimeLevel(args.number("delayLevel", 0));
            }
            args.object("properties").forEach((name, value) -> message.putUserProperty(name, value.toString()));
            messages.add(message);
        }
        return messages;
    }

    /** {@code prefix-INDEX}, or {@code prefix-SHARD-INDEX}, filled up to the size asked for. */
    private static byte[] body(Args args, int index, int shards) {
        StringBuilder text = new StringBuilder(args.text("body", "body")).append('-');
        if (shards > 0) {
            text.append(index % shards).append('-');
        }
        text.append(index);
        int size = args.number("size", 0);
        while (text.length() < size) {
            text.append('.');
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }
}
