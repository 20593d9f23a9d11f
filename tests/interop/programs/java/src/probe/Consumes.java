package probe;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.store.OffsetStore;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The verbs of the push consumer: they end when the expected number of messages has arrived. */
final class Consumes {
    private static final int SETTLE_MS = 100;
    private static final int SETTLE_TRIES = 50;

    private Consumes() {
    }

    static void register(Map<String, Probe.Verb> verbs) {
        verbs.put("consume-concurrently", args -> run(args, false, false));
        verbs.put("consume-orderly", args -> run(args, true, false));
        verbs.put("consume-broadcast", args -> run(args, false, true));
    }

    private static void run(Args args, boolean orderly, boolean broadcast) throws Exception {
        Tally tally = new Tally(args);
        DefaultMQPushConsumer consumer = subscribed(args);
        if (broadcast) {
            broadcast(consumer);
        }
        if (orderly) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                boolean failed = messages.stream().anyMatch(tally::arrived);
                return failed ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                context.setDelayLevelWhenNextConsume(args.number("retryLevel", 0));
                boolean failed = messages.stream().anyMatch(tally::arrived);
                return failed ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        Lines.ready();
        boolean complete = tally.await();
        Thread.sleep(args.number("lingerMs", 0));
        if (!broadcast) {
            settle(consumer);
        }
        consumer.shutdown();
        Lines.done(tally.count());
        if (!complete) {
            throw new IllegalStateException("only " + tally.count() + " messages arrived in time");
        }
    }

    /**
     * Wait until the broker knows how far this consumer is. On its way out a consumer of 5.x says so once more, but
     * its good-bye may overtake that, and whoever takes its queues over then begins where it began.
     */
    private static void settle(DefaultMQPushConsumer consumer) throws Exception {
        Thread.sleep(SETTLE_MS); // the last listener is about to return
        OffsetStore store = consumer.getDefaultMQPushConsumerImpl().getOffsetStore();
        for (MessageQueue queue : consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()) {
            long reached = store.readOffset(queue, ReadOffsetType.READ_FROM_MEMORY);
            for (int tries = 0; reached >= 0 && tries < SETTLE_TRIES; tries++) {
                store.persist(queue);
                Thread.sleep(SETTLE_MS);
                boolean known = store.readOffset(queue, ReadOffsetType.READ_FROM_STORE) >= reached;
                store.updateOffset(queue, reached, true); // what was read took its place
                if (known) {
                    break;
                }
            }
        }
    }

    private static DefaultMQPushConsumer subscribed(Args args) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            args.text("group"), args.signer(), new AllocateMessageQueueAveragely(), args.yes("trace"), null);
        consumer.setNamesrvAddr(args.namesrv());
        consumer.setConsumeFromWhere(args.text("from", "first").equals("first")
            ? ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
            : ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        if (args.text("sql", null) != null) {
            consumer.subscribe(args.topic(), MessageSelector.bySql(args.text("sql")));
        } else {
            consumer.subscribe(args.topic(), args.text("expression", "*"));
        }
        // The last listener must have returned before the offsets are stored.
        consumer.setAwaitTerminationMillisWhenShutdown(5000);
        consumer.setPersistConsumerOffsetInterval(args.number("persistMs", 5000));
        if (args.number("maxReconsumeTimes", -1) >= 0) {
            consumer.setMaxReconsumeTimes(args.number("maxReconsumeTimes", -1));
        }
        if (args.yes("brokerRebalance")) {
            // The broker says which queues to read, and whether to pull or to pop them.
            Newer.call(consumer, "setClientRebalance", false);
        }
        if (args.number("invisibleMs", 0) > 0) {
            Newer.call(consumer, "setPopInvisibleTime", (long) args.number("invisibleMs", 0));
        }
        return consumer;
    }

    /** The type of the model moved to another package in 5.x: name it by its value only. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void broadcast(DefaultMQPushConsumer consumer) {
        Class<? extends Enum> model = (Class<? extends Enum>) consumer.getMessageModel().getClass();
        Newer.call(consumer, "setMessageModel", Enum.valueOf(model, "BROADCASTING"));
    }

    /** Prints and counts messages; fails each message as often as asked before it counts. */
    private static final class Tally {
        private final int expected;
        private final int timeoutSeconds;
        private final int failures;
        private final CountDownLatch left;
        private final AtomicInteger count = new AtomicInteger();
        private final Map<String, AtomicInteger> attempts = new ConcurrentHashMap<>();

        Tally(Args args) {
            expected = args.number("expected", 1);
            timeoutSeconds = args.timeoutSeconds();
            failures = args.number("failures", 0);
            left = new CountDownLatch(expected);
        }

        /** Whether this delivery is to be failed. */
        boolean arrived(MessageExt message) {
            int attempt = attempts.computeIfAbsent(message.getMsgId(), id -> new AtomicInteger()).getAndIncrement();
            if (attempt < failures) {
                Lines.print("failed", Lines.fields(message));
                return true;
            }
            Lines.message(message);
            count.incrementAndGet();
            left.countDown();
            return false;
        }

        boolean await() throws InterruptedException {
            return left.await(timeoutSeconds, TimeUnit.SECONDS);
        }

        int count() {
            return count.get();
        }
    }
}
