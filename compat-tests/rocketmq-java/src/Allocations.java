import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** Prints how Apache's own strategies split queues: one line for each case and member. */
public class Allocations {
    private static final String[] BROKERS = {"east@a", "west@b", "north@c"};

    public static void main(String[] arguments) {
        for (int brokers = 1; brokers <= 3; brokers++) {
            for (int queuesEach : new int[] {1, 4, 5}) {
                for (int members : new int[] {1, 2, 3, 8}) {
                    show(brokers, queuesEach, members);
                }
            }
        }
    }

    private static void show(int brokers, int queuesEach, int memberCount) {
        List<MessageQueue> queues = new ArrayList<>();
        for (int broker = 0; broker < brokers; broker++) {
            for (int number = 0; number < queuesEach; number++) {
                queues.add(new MessageQueue("orders", BROKERS[broker], number));
            }
        }
        List<String> members = new ArrayList<>();
        for (int number = 0; number < memberCount; number++) {
            members.add(new String[] {"east", "west"}[number % 2] + "@10.0.0." + number);
        }
        Collections.sort(queues);
        Collections.sort(members);
        for (AllocateMessageQueueStrategy strategy : strategies(queues)) {
            for (String member : members) {
                List<MessageQueue> found = strategy.allocate("g", member, queues, members);
                StringBuilder text = new StringBuilder();
                for (MessageQueue queue : found) {
                    text.append(text.length() == 0 ? "" : " ");
                    text.append(queue.getBrokerName()).append('/').append(queue.getQueueId());
                }
                System.out.printf(
                    "%s %d %d %d %s: %s%n",
                    strategy.getName(), brokers, queuesEach, memberCount, member, text);
            }
        }
    }

    private static List<AllocateMessageQueueStrategy> strategies(List<MessageQueue> queues) {
        AllocateMessageQueueByConfig configured = new AllocateMessageQueueByConfig();
        configured.setMessageQueueList(queues.subList(0, 1));
        AllocateMessageQueueByMachineRoom rooms = new AllocateMessageQueueByMachineRoom();
        Set<String> near = new HashSet<>();
        near.add("east");
        near.add("north");
        rooms.setConsumeridcs(near);
        AllocateMachineRoomNearby.MachineRoomResolver resolver =
            new AllocateMachineRoomNearby.MachineRoomResolver() {
                @Override
                public String brokerDeployIn(MessageQueue queue) {
                    return queue.getBrokerName().split("@")[0];
                }

                @Override
                public String consumerDeployIn(String member) {
                    return member.split("@")[0];
                }
            };
        List<AllocateMessageQueueStrategy> found = new ArrayList<>();
        found.add(new AllocateMessageQueueAveragely());
        found.add(new AllocateMessageQueueAveragelyByCircle());
        found.add(configured);
        found.add(rooms);
        found.add(new AllocateMachineRoomNearby(new AllocateMessageQueueAveragely(), resolver));
        found.add(new AllocateMessageQueueConsistentHash());
        return found;
    }
}
