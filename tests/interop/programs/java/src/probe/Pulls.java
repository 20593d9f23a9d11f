package probe;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The verbs of the two pulling consumers. */
final class Pulls {
    private static final int BATCH = 32;
    private static final int POLL_MS = 500;

    private Pulls() {
    }

    static void register(Map<String, Probe.Verb> verbs) {
        verbs.put("pull", Pulls::pull);
        verbs.put("lite-pull", Pulls::litePull);
        verbs.put("lite-assign", Pulls::liteAssign);
    }

    /** Reads every queue to its end and commits the offset reached. */
    @SuppressWarnings("deprecation")
    private static void pull(Args args) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(args.text("group"), args.signer());
        consumer.setNamesrvAddr(args.namesrv());
        consumer.start();
        int count = 0;
        for (MessageQueue queue : new TreeSet<>(consumer.fetchSubscribeMessageQueues(args.topic()))) {
            long offset = args.big("offset", consumer.minOffset(queue));
            PullResult result;
            do {
                result = consumer.pull(queue, args.text("expression", "*"), offset, BATCH);
                Lines.print("pulled", Map.of("queueId", queue.getQueueId(), "offset", offset,
                    "status", result.getPullStatus().name(), "next", result.getNextBeginOffset(),
                    "min", result.getMinOffset(), "max", result.getMaxOffset()));
                if (result.getPullStatus() == PullStatus.FOUND) {
                    result.getMsgFoundList().forEach(Lines::message);
                    count += result.getMsgFoundList().size();
                }
                offset = result.getNextBeginOffset();
            } while (offset < result.getMaxOffset());
            consumer.updateConsumeOffset(queue, offset);
            consumer.getOffsetStore().persist(queue);
            Lines.print("committed", Map.of("queueId", queue.getQueueId(),
                "offset", committed(consumer, queue, offset)));
        }
        consumer.shutdown();
        Lines.done(count);
    }

    /** Commits travel one-way: the broker may need a moment before it tells the new offset. */
    @SuppressWarnings("deprecation")
    private static long committed(DefaultMQPullConsumer consumer, MessageQueue queue, long expected)
        throws Exception {
        long found = consumer.fetchConsumeOffset(queue, true);
        for (int i = 0; i < 50 && found != expected; i++) {
            Thread.sleep(100);
            found = consumer.fetchConsumeOffset(queue, true);
        }
        return found;
    }

    private static void litePull(Args args) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(args.text("group"), args.signer());
        consumer.setNamesrvAddr(args.namesrv());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args.topic(), args.text("expression", "*"));
        consumer.start();
        Lines.ready();
        end(consumer, poll(consumer, args));
    }

    /**
     * Reads the queues, goes back to their beginning and reads them again.
     *
     * <p>Not at once back: a pull that is on its way during a seek may add what it found to the
     * client's cache after the seek emptied it.
     */
    private static void liteAssign(Args args) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(args.text("group"), args.signer());
        consumer.setNamesrvAddr(args.namesrv());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        consumer.start();
        Collection<MessageQueue> queues = consumer.fetchMessageQueues(args.topic());
        consumer.assign(queues);
        Lines.ready();
        int count = poll(consumer, args);
        for (MessageQueue queue : queues) {
            consumer.seekToBegin(queue);
        }
        end(consumer, count + poll(consumer, args));
    }

    private static int poll(DefaultLitePullConsumer consumer, Args args) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(args.timeoutSeconds());
        int expected = args.number("expected", 1);
        int count = 0;
        while (count < expected && System.nanoTime() < end) {
            List<MessageExt> messages = consumer.poll(POLL_MS);
            messages.forEach(Lines::message);
            count += messages.size();
        }
        if (count < expected) {
            throw new IllegalStateException("only " + count + " messages arrived in time");
        }
        return count;
    }

    private static void end(DefaultLitePullConsumer consumer, int count) {
        consumer.commitSync();
        consumer.shutdown();
        Lines.done(count);
    }
}
