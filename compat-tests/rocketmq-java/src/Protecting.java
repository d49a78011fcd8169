import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;

/** What clients meet at a broker that protects itself. */
final class Protecting {
    private static final long SECONDS = 60;

    private Protecting() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("overload", Protecting::overload);
        scenarios.put("send-once", Protecting::sendOnce);
    }

    /** How a send ended, in words: the code and text of the broker's refusal, or "sent". */
    private static String outcome(DefaultMQProducer producer, String topic, int number) {
        try {
            producer.send(Sending.message(topic, number));
            return "sent";
        } catch (Exception error) {
            // A code that the client would try elsewhere is the cause of its error.
            Throwable cause = error.getCause() == null ? error : error.getCause();
            if (cause instanceof MQBrokerException) {
                MQBrokerException refused = (MQBrokerException) cause;
                return refused.getResponseCode() + " " + refused.getErrorMessage();
            }
            return error.toString();
        }
    }

    private static DefaultMQProducer producer(String namesrv) throws Exception {
        DefaultMQProducer producer = Clients.producer(namesrv);
        producer.setSendMsgTimeout(20_000);
        producer.setRetryTimesWhenSendFailed(0);
        return producer;
    }

    static String sendOnce(String[] words) throws Exception {
        DefaultMQProducer producer = producer(words[1]);
        String said = outcome(producer, words[2], 0);
        producer.shutdown();
        return said;
    }

    /** overload NAMESRV TOPIC THREADS EACH: the errors of sends; what was sent is read, what was refused is not there. */
    static String overload(String[] words) throws Exception {
        String topic = words[2];
        int threads = Integer.parseInt(words[3]);
        int each = Integer.parseInt(words[4]);
        DefaultMQProducer producer = producer(words[1]);
        Program.same("sent", outcome(producer, topic, 0), "alone");
        Set<String> sent = Collections.synchronizedSet(new TreeSet<>(Set.of("m0")));
        Set<String> errors = Collections.synchronizedSet(new TreeSet<>());
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        for (int number = 1; number <= threads * each; number++) {
            int mine = number;
            pool.submit(() -> {
                String said = outcome(producer, topic, mine);
                if (said.equals("sent")) {
                    sent.add("m" + mine);
                } else {
                    errors.add(said);
                }
            });
        }
        pool.shutdown();
        Program.check(pool.awaitTermination(SECONDS, TimeUnit.SECONDS), "sends end");
        Program.same("sent", outcome(producer, topic, threads * each + 1), "alone again");
        sent.add("m" + (threads * each + 1));
        producer.shutdown();
        List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = Clients.push(words[1], "overload-" + topic);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(Consuming.into(found));
        consumer.start();
        Program.await("all that was sent", SECONDS, () -> Consuming.bodies(found).containsAll(sent));
        consumer.shutdown();
        Program.same(new TreeSet<>(sent), Consuming.bodies(found), "nothing that was refused");
        return String.join(", ", errors);
    }
}
