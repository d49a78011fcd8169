import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.message.MessageExt;

/** One member of a group whose other members are another client's. */
final class Mixing {
    private static final Map<String, DefaultMQPushConsumer> MEMBERS = new ConcurrentHashMap<>();
    private static final Map<String, List<MessageExt>> SEEN = new ConcurrentHashMap<>();

    private Mixing() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("mix-join", Mixing::join);
        scenarios.put("mix-queues", Mixing::queues);
        scenarios.put("mix-seen", Mixing::seen);
        scenarios.put("mix-leave", Mixing::leave);
    }

    /** mix-join NAMESRV TOPIC GROUP. */
    static String join(String[] words) throws Exception {
        List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = Clients.push(words[1], words[3]);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener(Consuming.into(found));
        consumer.start();
        MEMBERS.put(words[3], consumer);
        SEEN.put(words[3], found);
        return "";
    }

    /** mix-queues TOPIC GROUP: the numbers of the queues that it reads, with commas between. */
    static String queues(String[] words) throws Exception {
        return MEMBERS.get(words[2]).getDefaultMQPushConsumerImpl().getRebalanceImpl()
                .getProcessQueueTable().keySet().stream()
                .filter(queue -> queue.getTopic().equals(words[1]))
                .map(queue -> String.valueOf(queue.getQueueId())).sorted()
                .collect(Collectors.joining(","));
    }

    /** mix-seen GROUP: the bodies of what it was given. */
    static String seen(String[] words) throws Exception {
        return String.join(",", Consuming.bodies(SEEN.get(words[1])));
    }

    /** mix-leave GROUP. */
    static String leave(String[] words) throws Exception {
        MEMBERS.remove(words[1]).shutdown();
        return "";
    }
}
