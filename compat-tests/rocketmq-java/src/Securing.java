import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;

/** What clients are allowed, by their users: a producer and a reader that stay open, and how what they ask ends. */
@SuppressWarnings("deprecation")
final class Securing {
    private static final Map<String, DefaultMQProducer> PRODUCERS = new HashMap<>();
    private static final Map<String, DefaultMQPullConsumer> READERS = new HashMap<>();

    private Securing() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("open-producer", Securing::openProducer);
        scenarios.put("open-reader", Securing::openReader);
        scenarios.put("try-send", Securing::trySend);
        scenarios.put("try-read", Securing::tryRead);
        scenarios.put("close-all", Securing::closeAll);
    }

    /** open-producer NAME NAMESRV: a producer of the user that was set last. */
    static String openProducer(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[2]);
        producer.setRetryTimesWhenSendFailed(0);
        PRODUCERS.put(words[1], producer);
        return words[1];
    }

    /** open-reader NAME NAMESRV GROUP: a consumer that pulls when it is told to. */
    static String openReader(String[] words) throws Exception {
        DefaultMQPullConsumer reader = new DefaultMQPullConsumer(words[3], Clients.hook());
        reader.setNamesrvAddr(words[2]);
        reader.setInstanceName(Clients.instance());
        Clients.patient(reader);
        reader.start();
        READERS.put(words[1], reader);
        return words[1];
    }

    /** try-send NAME TOPIC: "sent", or the code and the text of what was refused. */
    static String trySend(String[] words) {
        try {
            PRODUCERS.get(words[1]).send(Sending.message(words[2], 0));
            return "sent";
        } catch (Exception error) {
            return described(error);
        }
    }

    /** try-read NAME TOPIC: what a pull from the beginning of each queue finds, or the code and the text. */
    static String tryRead(String[] words) {
        DefaultMQPullConsumer reader = READERS.get(words[1]);
        try {
            int count = 0;
            for (MessageQueue queue : reader.fetchSubscribeMessageQueues(words[2])) {
                count += reader.pull(queue, "*", 0, 32).getMsgFoundList() == null
                        ? 0 : reader.pull(queue, "*", 0, 32).getMsgFoundList().size();
            }
            return "read " + count;
        } catch (Exception error) {
            return described(error);
        }
    }

    static String closeAll(String[] words) {
        PRODUCERS.values().forEach(DefaultMQProducer::shutdown);
        READERS.values().forEach(DefaultMQPullConsumer::shutdown);
        PRODUCERS.clear();
        READERS.clear();
        return "closed";
    }

    /** The refusal of a broker by code and text, and another failure by its kind and the beginning of its text. */
    private static String described(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof MQBrokerException) {
                MQBrokerException refused = (MQBrokerException) each;
                return refused.getResponseCode() + " " + refused.getErrorMessage();
            }
        }
        Throwable root = error;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        String text = root instanceof MQClientException ? ((MQClientException) root).getErrorMessage() : null;
        text = text == null ? String.valueOf(root.getMessage()) : text;
        return root.getClass().getSimpleName() + " " + text.split("\n")[0].split(",")[0];
    }
}
