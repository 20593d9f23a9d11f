package springprobe;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.spring.annotation.RocketMQTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionState;
import org.springframework.context.annotation.Profile;
import org.springframework.messaging.Message;

/** Decides as the sender says; what it leaves open it commits when the broker asks. */
@RocketMQTransactionListener
@Profile("send")
class Transactions implements RocketMQLocalTransactionListener {
    private final CountDownLatch checked = new CountDownLatch(1);

    @Override
    public RocketMQLocalTransactionState executeLocalTransaction(Message message, Object outcome) {
        return switch ((String) outcome) {
            case "commit" -> RocketMQLocalTransactionState.COMMIT;
            case "rollback" -> RocketMQLocalTransactionState.ROLLBACK;
            default -> RocketMQLocalTransactionState.UNKNOWN;
        };
    }

    @Override
    public RocketMQLocalTransactionState checkLocalTransaction(Message message) {
        String body = new String((byte[]) message.getPayload(), StandardCharsets.UTF_8);
        Lines.print("checked", Map.of("body", body));
        checked.countDown();
        return RocketMQLocalTransactionState.COMMIT;
    }

    void awaitCheck(long seconds) throws InterruptedException {
        if (!checked.await(seconds, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the broker never asked");
        }
    }
}
