import java.lang.reflect.Method;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** The enumeration of models lies in another package in each version of the client. */
final class Models {
    private Models() {}

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void broadcast(DefaultMQPushConsumer consumer) throws Exception {
        for (Method method : DefaultMQPushConsumer.class.getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                Class kind = method.getParameterTypes()[0];
                method.invoke(consumer, Enum.valueOf(kind, "BROADCASTING"));
                return;
            }
        }
        throw new IllegalStateException("no setMessageModel");
    }
}
