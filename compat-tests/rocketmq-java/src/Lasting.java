import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.message.MessageExt;

/** A consumer that outlives a scenario, for what happens to its server meanwhile. */
final class Lasting {
    private static final long SECONDS = 60;
    private static final Map<String, Lasting> BEGUN = new HashMap<>();

    private final DefaultMQPushConsumer consumer;
    private final List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());

    private Lasting(String namesrv, String topic, String group) throws Exception {
        consumer = Clients.push(namesrv, group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(Consuming.into(found));
        consumer.start();
    }

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("begin", Lasting::begin);
        scenarios.put("seen", Lasting::seen);
        scenarios.put("halt", Lasting::halt);
    }

    /** begin NAMESRV TOPIC GROUP: reads from now on. */
    static String begin(String[] words) throws Exception {
        BEGUN.put(words[3], new Lasting(words[1], words[2], words[3]));
        return words[3];
    }

    /** seen GROUP BODY...: waits until all of these have come. */
    static String seen(String[] words) throws Exception {
        Lasting lasting = BEGUN.get(words[1]);
        List<String> wanted = List.of(words).subList(2, words.length);
        Program.await("all of " + wanted, SECONDS,
                () -> Consuming.bodies(lasting.found).containsAll(wanted));
        return String.join(",", Consuming.bodies(lasting.found));
    }

    /** halt GROUP: ends it, whether its server answers or not; says what it has seen. */
    static String halt(String[] words) {
        Lasting lasting = BEGUN.remove(words[1]);
        lasting.consumer.shutdown();
        return String.join(",", Consuming.bodies(lasting.found));
    }
}
