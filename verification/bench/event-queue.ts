import { connect } from 'amqplib';

const EXCHANGE = 'Platform.Contracts:ScheduleCreatedEvent';
const QUEUE = 'bench.schedule-post';

/**
 * Binds a queue to the events of new schedules. They are published as mandatory, so the broker would return
 * them without a queue.
 * @param handle called with each event. Without it the events stay in the queue.
 */
export async function openQueue(url: string, handle?: (body: string) => void) {
  const connection = await connect(url);
  const channel = await connection.createChannel();
  await channel.assertExchange(EXCHANGE, 'fanout', { durable: true });
  await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
  await channel.bindQueue(QUEUE, EXCHANGE, '');
  if (handle !== undefined)
    await channel.consume(QUEUE, (message) => message && handle(message.content.toString()), { noAck: true });
  return {
    purge: () => channel.purgeQueue(QUEUE),
    close: async () => {
      await channel.deleteQueue(QUEUE);
      await connection.close();
    },
  };
}
