package probe;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * The verbs of the transactional producer. A plan says what becomes of each message, in turn: its
 * words are the answers given, the first by the local transaction and the others when checked. The
 * last word is repeated: a broker may check any message that it has not marked as decided yet.
 */
final class Transactions {
    private static final int HEARTBEAT_MS = 1000;

    private Transactions() {
    }

    static void register(Map<String, Probe.Verb> verbs) {
        verbs.put("send-transaction", Transactions::send);
        verbs.put("answer-checks", Transactions::answer);
    }

    private static void send(Args args) throws Exception {
        List<Message> messages = Messages.of(args);
        Plan plan = new Plan(args, messages.size());
        TransactionMQProducer producer = started(args, plan);
        for (int i = 0; i < messages.size(); i++) {
            Lines.sent(i, producer.sendMessageInTransaction(messages.get(i), i));
        }
        if (args.yes("abandon")) {
            // Gone before anybody asked: another member of the group has to know.
            producer.shutdown();
            Lines.done(messages.size());
            return;
        }
        plan.await(args.timeoutSeconds());
        Lines.done(messages.size());
        // The outcome of a check leaves on another thread, one-way, and a broker that did not take
        // it checks again: stay reachable for a while.
        Thread.sleep(args.number("lingerMs", 2500));
        producer.shutdown();
    }

    /** A member of the group that sends nothing, and answers for the others. */
    private static void answer(Args args) throws Exception {
        Plan plan = new Plan(args, args.number("count", 1));
        TransactionMQProducer producer = started(args, plan);
        announce(producer, args.topic());
        Lines.ready();
        plan.await(args.timeoutSeconds());
        Lines.done(args.number("count", 1));
        Thread.sleep(args.number("lingerMs", 2500));
        producer.shutdown();
    }

    /** A producer that never sent knows no broker to tell about itself. */
    private static void announce(TransactionMQProducer producer, String topic) {
        Object inner = producer.getDefaultMQProducerImpl();
        String getter = Newer.has(inner, "getMqClientFactory", 0) ? "getMqClientFactory" : "getmQClientFactory";
        Object factory = Newer.call(inner, getter);
        Newer.call(factory, "updateTopicRouteInfoFromNameServer", topic);
    }

    private static TransactionMQProducer started(Args args, Plan plan) throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer(args.text("producer", "probe_producer"), args.signer());
        producer.setTransactionListener(plan);
        producer.setHeartbeatBrokerInterval(HEARTBEAT_MS);
        return Sends.started(producer, args);
    }

    private static final class Plan implements TransactionListener {
        private final List<String> plans;
        private final Map<Integer, Integer> asked = new ConcurrentHashMap<>();
        private final Set<Integer> open = ConcurrentHashMap.newKeySet();
        private final CountDownLatch undecided;

        Plan(Args args, int count) {
            List<String> given = args.texts("plan");
            plans = given.isEmpty() ? List.of("commit", "rollback", "unknown commit") : given;
            for (int i = 0; i < count; i++) {
                if (!words(i)[0].equals("unknown") || words(i).length > 1) {
                    open.add(i);
                }
            }
            undecided = new CountDownLatch(open.size());
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object index) {
            return next((Integer) index);
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            int index = Messages.index(message);
            // Who answers for another begins with the second word.
            asked.putIfAbsent(index, 1);
            LocalTransactionState answer = next(index);
            Map<String, Object> fields = Lines.fields(message);
            fields.put("answer", answer.name());
            fields.put("transactionId", message.getTransactionId());
            Lines.print("checked", fields);
            return answer;
        }

        private String[] words(int index) {
            return plans.get(index % plans.size()).split(" ");
        }

        private LocalTransactionState next(int index) {
            String[] words = words(index);
            int turn = asked.merge(index, 1, Integer::sum) - 1;
            String word = words[Math.min(turn, words.length - 1)];
            if (word.equals("unknown")) {
                return LocalTransactionState.UNKNOW;
            }
            if (open.remove(index)) {
                undecided.countDown();
            }
            return word.equals("commit")
                ? LocalTransactionState.COMMIT_MESSAGE
                : LocalTransactionState.ROLLBACK_MESSAGE;
        }

        void await(int seconds) throws InterruptedException {
            if (!undecided.await(seconds, TimeUnit.SECONDS)) {
                throw new IllegalStateException(undecided.getCount() + " transactions were never decided");
            }
        }
    }
}
