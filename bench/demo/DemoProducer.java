import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/** RocketMQ's own client sends a numbered order ten times a second, until it is ended. */
public final class DemoProducer {
    public static void main(String[] words) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("demo");
        producer.setNamesrvAddr(words[0]);
        producer.setSendMsgTimeout(30_000);
        producer.start();
        for (long number = 0; ; number++) {
            String shop = "shop-" + number % 7;
            byte[] body = ("order " + number + " of " + shop).getBytes(StandardCharsets.UTF_8);
            try {
                producer.send(new Message(words[1], "", shop, body));
            } catch (Exception failed) {
                System.err.println("send failed: " + failed.getMessage());
            }
            Thread.sleep(100);
        }
    }
}
