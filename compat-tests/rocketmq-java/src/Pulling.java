import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What pull and lite pull consumers do. */
@SuppressWarnings("deprecation")
final class Pulling {
    private Pulling() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("pull", Pulling::pull);
        scenarios.put("lite-subscribe", Pulling::subscribe);
        scenarios.put("lite-assign", Pulling::assign);
    }

    static String pull(String[] words) throws Exception {
        long before = System.currentTimeMillis() - 1000;
        Consuming.fill(words[1], words[2], 20);
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("pull-" + words[2], Clients.hook());
        consumer.setNamesrvAddr(words[1]);
        consumer.setInstanceName(Clients.instance());
        consumer.start();
        int count = 0;
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(words[2])) {
            long end = consumer.maxOffset(queue);
            Program.same(0L, consumer.minOffset(queue), "start");
            Program.same(0L, consumer.searchOffset(queue, before), "before all");
            Program.same(end, consumer.searchOffset(queue, System.currentTimeMillis() + 60_000), "behind all");
            Program.check(consumer.earliestMsgStoreTime(queue) > before, "the first one's time");
            PullResult result = consumer.pull(queue, "*", 0, 32);
            Program.same(PullStatus.FOUND, result.getPullStatus(), "status");
            Program.same(end, result.getNextBeginOffset(), "next");
            count += result.getMsgFoundList().size();
            Program.same(PullStatus.NO_NEW_MSG, consumer.pull(queue, "*", end, 32).getPullStatus(), "end");
            Program.same(PullStatus.OFFSET_ILLEGAL, consumer.pull(queue, "*", end + 5, 32).getPullStatus(), "beyond");
            Program.same(end, consumer.pull(queue, "*", end + 5, 32).getNextBeginOffset(), "back");
            Program.same(PullStatus.NO_MATCHED_MSG, consumer.pull(queue, "TagZ", 0, 32).getPullStatus(), "tags");
            consumer.updateConsumeOffset(queue, end);
            consumer.getDefaultMQPullConsumerImpl().getOffsetStore().updateConsumeOffsetToBroker(queue, end, false);
            Program.same(end, consumer.fetchConsumeOffset(queue, true), "kept");
        }
        consumer.shutdown();
        Program.same(20, count, "messages");
        return "20";
    }

    static String subscribe(String[] words) throws Exception {
        Consuming.fill(words[1], words[2], 30);
        DefaultLitePullConsumer consumer = Clients.lite(words[1], "lite-" + words[2]);
        consumer.subscribe(words[2], "*");
        consumer.start();
        Set<String> found = new TreeSet<>();
        Program.await("30 messages", 60, () -> {
            for (MessageExt message : consumer.poll(500)) {
                found.add(new String(message.getBody()));
            }
            return found.size() == 30;
        });
        Consuming.fill(words[1], words[2], 1);
        List<MessageExt> more = new ArrayList<>();
        Program.await("one more", 60, () -> more.addAll(consumer.poll(500)) || !more.isEmpty());
        consumer.shutdown();
        return String.valueOf(found.size());
    }

    static String assign(String[] words) throws Exception {
        Consuming.fill(words[1], words[2], 20);
        DefaultLitePullConsumer consumer = Clients.lite(words[1], "assign-" + words[2]);
        consumer.setAutoCommit(false);
        consumer.start();
        Collection<MessageQueue> queues = consumer.fetchMessageQueues(words[2]);
        MessageQueue queue = queues.iterator().next();
        consumer.assign(List.of(queue));
        consumer.seek(queue, 2);
        List<MessageExt> found = new ArrayList<>();
        Program.await("messages", 60, () -> {
            found.addAll(consumer.poll(500));
            // A pull that was under way before the seek may still bring what it had asked for.
            found.removeIf(message -> message.getQueueOffset() < 2);
            return !found.isEmpty();
        });
        Program.same(2L, found.get(0).getQueueOffset(), "sought");
        consumer.seekToBegin(queue);
        List<MessageExt> again = new ArrayList<>();
        Program.await("messages", 60, () -> {
            again.addAll(consumer.poll(500));
            return again.stream().anyMatch(message -> message.getQueueOffset() == 0);
        });
        consumer.shutdown();
        return String.valueOf(queues.size());
    }

}
