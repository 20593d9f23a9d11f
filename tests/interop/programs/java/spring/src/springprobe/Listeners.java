package springprobe;

import java.util.Map;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.spring.annotation.ConsumeMode;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.apache.rocketmq.spring.core.RocketMQReplyListener;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;

/** The listeners of the application: of every kind one, each in a group of its own. */
final class Listeners {
    private Listeners() {
    }

    /** Fails each message that is tagged so when it comes the first time. */
    @Component
    @Profile("listen")
    @RocketMQMessageListener(topic = "${probe.topic}", consumerGroup = "${probe.group}_all",
        delayLevelWhenNextConsume = 1)
    static class Everything implements RocketMQListener<MessageExt> {
        private final Listening listening;

        Everything(Listening listening) {
            this.listening = listening;
        }

        @Override
        public void onMessage(MessageExt message) {
            Map<String, Object> fields = Lines.fields("all", message);
            if ("fails".equals(message.getTags()) && message.getReconsumeTimes() == 0) {
                Lines.print("failed", fields);
                throw new IllegalStateException("not now");
            }
            listening.arrived(fields);
        }
    }

    /** Gets one tag, as objects. */
    @Component
    @Profile("listen")
    @RocketMQMessageListener(topic = "${probe.topic}", consumerGroup = "${probe.group}_orders",
        selectorExpression = "order || paid")
    static class Orders implements RocketMQListener<Order> {
        private final Listening listening;

        Orders(Listening listening) {
            this.listening = listening;
        }

        @Override
        public void onMessage(Order order) {
            listening.arrived(Map.of("listener", "orders", "id", order.id(), "pieces", order.pieces()));
        }
    }

    /** One queue, one thread. */
    @Component
    @Profile("listen")
    @RocketMQMessageListener(topic = "${probe.topic}", consumerGroup = "${probe.group}_ordered",
        selectorExpression = "ordered", consumeMode = ConsumeMode.ORDERLY)
    static class InOrder implements RocketMQListener<String> {
        private final Listening listening;

        InOrder(Listening listening) {
            this.listening = listening;
        }

        @Override
        public void onMessage(String body) {
            listening.arrived(Map.of("listener", "ordered", "body", body));
        }
    }

    /** Answers questions. */
    @Component
    @Profile("listen")
    @RocketMQMessageListener(topic = "${probe.topic}", consumerGroup = "${probe.group}_answers",
        selectorExpression = "question")
    static class Answers implements RocketMQReplyListener<String, String> {
        private final Listening listening;

        Answers(Listening listening) {
            this.listening = listening;
        }

        @Override
        public String onMessage(String question) {
            listening.arrived(Map.of("listener", "answers", "body", question));
            return "re: " + question;
        }
    }
}
