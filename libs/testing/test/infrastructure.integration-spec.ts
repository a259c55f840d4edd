import { connect } from 'amqplib';
import { Client } from 'pg';
import { createTestBroker, createTestDatabase, eventually } from '../src';

const migrate = async (url: string): Promise<void> => {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('CREATE TABLE note (text text)');
  await client.end();
};

describe('createTestDatabase', () => {
  it('creates isolated migrated databases, and leaves nothing behind', async () => {
    const [one, two] = await Promise.all([createTestDatabase({ migrate }), createTestDatabase({ migrate })]);
    await one.query('INSERT INTO note VALUES ($1)', ['mine']);
    expect(await one.query('SELECT text FROM note')).toEqual([{ text: 'mine' }]);
    expect(await two.query('SELECT text FROM note')).toEqual([]);
    const { role } = await one.createRole();
    const watcher = await createTestDatabase({ migrate: () => Promise.resolve() });
    await one.drop();
    await two.drop();
    const names = [one.url, two.url].map((url) => new URL(url).pathname.slice(1));
    const left =
      'SELECT datname AS name FROM pg_database WHERE datname = ANY($1) UNION SELECT rolname FROM pg_roles WHERE rolname = $2';
    expect(await watcher.query(left, [names, role])).toEqual([]);
    await watcher.drop();
  });
});

describe('createTestBroker', () => {
  it('creates a virtual host for publishing and inspecting', async () => {
    const broker = await createTestBroker();
    const { management } = broker;
    await management.bindQueue('Platform.Contracts:Test', 'probe');
    expect(await management.exchange('Platform.Contracts:Test')).toMatchObject({
      type: 'fanout',
      durable: true,
    });
    const message = {
      body: '{"a":"ü"}',
      properties: { content_type: 'application/json', headers: { reason: 'test' } },
    };
    expect(await management.publish('Platform.Contracts:Test', message)).toBe(true);
    expect(await management.publish('', { body: 'lost', routingKey: 'nowhere' })).toBe(false);
    const [received] = await eventually(async () => {
      const messages = await management.get('probe', 10);
      expect(messages).toHaveLength(1);
      return messages;
    });
    expect(received).toMatchObject({ body: '{"a":"ü"}', headers: { reason: 'test' }, redelivered: false });
    expect(await management.queue('nowhere')).toBeNull();
    expect(await management.queues()).toEqual(['probe']);
    await broker.drop();
    await expect(management.queues()).rejects.toThrow('404');
  });

  it('publishes to a queue that is still being created', async () => {
    const broker = await createTestBroker();
    const connection = await connect(broker.url);
    const channel = await connection.createChannel();
    for (let n = 1; n <= 20; n += 1) {
      const queue = `quorum-${String(n)}`;
      const declared = channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
      while (!(await broker.management.publish('', { body: '', routingKey: queue })));
      await declared;
    }
    await connection.close();
    await broker.drop();
  });
});
