package probe;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** The verbs of questions and answers. */
final class Requests {
    private Requests() {
    }

    static void register(Map<String, Probe.Verb> verbs) {
        verbs.put("request", Requests::request);
        verbs.put("respond", Requests::respond);
    }

    /** By callback: the waiting form of 5.3.3 gives up as soon as its question is stored. */
    private static void request(Args args) throws Exception {
        DefaultMQProducer producer = Sends.started(new DefaultMQProducer("probe_asker"), args);
        List<Message> questions = Messages.of(args);
        for (int i = 0; i < questions.size(); i++) {
            CountDownLatch answered = new CountDownLatch(1);
            AtomicBoolean isAnswered = new AtomicBoolean();
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("index", i);
            producer.request(questions.get(i), new RequestCallback() {
                /** 4.9.8 also calls when the question is stored: without a reply, or a second time with it. */
                @Override
                public void onSuccess(Message reply) {
                    if (reply == null || !isAnswered.compareAndSet(false, true)) {
                        return;
                    }
                    fields.put("body", new String(reply.getBody(), StandardCharsets.UTF_8));
                    fields.put("properties", reply.getProperties());
                    Lines.print("reply", fields);
                    answered.countDown();
                }

                @Override
                public void onException(Throwable late) {
                    fields.put("error", late.toString());
                    Lines.print("late", fields);
                    answered.countDown();
                }
            }, args.number("waitMs", 20_000));
            answered.await();
        }
        producer.shutdown();
        Lines.done(questions.size());
    }

    /** Answers each question with its own words after "re: ". */
    private static void respond(Args args) throws Exception {
        CountDownLatch left = new CountDownLatch(args.number("expected", 1));
        DefaultMQProducer producer = Sends.started(new DefaultMQProducer("probe_answerer"), args);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args.text("group"));
        consumer.setNamesrvAddr(args.namesrv());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullInterval(0);
        consumer.subscribe(args.topic(), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                Lines.message(message);
                String words = "re: " + new String(message.getBody(), StandardCharsets.UTF_8);
                try {
                    Message reply = MessageUtil.createReplyMessage(message, words.getBytes(StandardCharsets.UTF_8));
                    producer.send(reply, 10_000);
                } catch (Exception failure) {
                    Lines.error(failure);
                }
                left.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Lines.ready();
        boolean complete = left.await(args.timeoutSeconds(), TimeUnit.SECONDS);
        consumer.shutdown();
        producer.shutdown();
        if (!complete) {
            throw new IllegalStateException(left.getCount() + " questions never came");
        }
        Lines.done(args.number("expected", 1));
    }
}
