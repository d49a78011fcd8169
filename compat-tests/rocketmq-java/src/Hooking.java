import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.hook.CheckForbiddenContext;
import org.apache.rocketmq.client.hook.CheckForbiddenHook;
import org.apache.rocketmq.client.hook.ConsumeMessageContext;
import org.apache.rocketmq.client.hook.ConsumeMessageHook;
import org.apache.rocketmq.client.hook.FilterMessageContext;
import org.apache.rocketmq.client.hook.FilterMessageHook;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.hook.SendMessageHook;
import org.apache.rocketmq.client.producer.DefaultMQProducer;

/** What hooks around sends and consumption see, of a client whose broker may be any. */
final class Hooking {
    private static final long SECONDS = 60;

    private Hooking() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("hooks", Hooking::hooks);
    }

    /** hooks NAMESRV TOPIC: what was seen how often: sends, one that is forbidden, filters, success and failure. */
    static String hooks(String[] words) throws Exception {
        Map<String, Integer> seen = Collections.synchronizedMap(new TreeMap<>());
        DefaultMQProducer producer = Clients.producer(words[1]);
        producer.getDefaultMQProducerImpl().registerSendMessageHook(new SendMessageHook() {
            @Override
            public String hookName() {
                return "counting sends";
            }

            @Override
            public void sendMessageBefore(SendMessageContext context) {
                seen.merge("before-send", 1, Integer::sum);
            }

            @Override
            public void sendMessageAfter(SendMessageContext context) {
                String how = context.getException() == null ? context.getSendResult().getSendStatus().name() : "failed";
                seen.merge("after-send-" + how, 1, Integer::sum);
            }
        });
        producer.getDefaultMQProducerImpl().registerCheckForbiddenHook(new CheckForbiddenHook() {
            @Override
            public String hookName() {
                return "forbidding one";
            }

            @Override
            public void checkForbidden(CheckForbiddenContext context) throws MQClientException {
                if ("key-5".equals(context.getMessage().getKeys())) {
                    throw new MQClientException("forbidden by a hook", null);
                }
            }
        });
        for (int number = 0; number < 6; number++) {
            try {
                producer.send(Sending.message(words[2], number));
            } catch (MQClientException forbidden) {
                seen.merge("forbidden", 1, Integer::sum);
            }
        }
        producer.shutdown();
        AtomicInteger succeeded = new AtomicInteger();
        DefaultMQPushConsumer consumer = Clients.push(words[1], "hooks-" + words[2]);
        consumer.getDefaultMQPushConsumerImpl().registerConsumeMessageHook(new ConsumeMessageHook() {
            @Override
            public String hookName() {
                return "counting consumption";
            }

            @Override
            public void consumeMessageBefore(ConsumeMessageContext context) {
                seen.merge("before-consume", context.getMsgList().size(), Integer::sum);
            }

            @Override
            public void consumeMessageAfter(ConsumeMessageContext context) {
                String how = context.isSuccess() ? "success" : "failure";
                seen.merge("after-consume-" + how, context.getMsgList().size(), Integer::sum);
                if (context.isSuccess()) {
                    succeeded.addAndGet(context.getMsgList().size());
                }
            }
        });
        consumer.getDefaultMQPushConsumerImpl().registerFilterMessageHook(new FilterMessageHook() {
            @Override
            public String hookName() {
                return "dropping one";
            }

            @Override
            public void filterMessage(FilterMessageContext context) {
                context.getMsgList().removeIf(message -> "key-4".equals(message.getKeys()));
            }
        });
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                "key-3".equals(messages.get(0).getKeys()) && messages.get(0).getReconsumeTimes() == 0
                        ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        consumer.start();
        Program.await("four that succeed, one of them at its second try", SECONDS, () -> succeeded.get() >= 4);
        consumer.shutdown();
        return seen.toString().replace(" ", "");
    }
}
