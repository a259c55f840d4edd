import { randomUUID } from 'node:crypto';
import type { INestApplicationContext } from '@nestjs/common';
import { BusinessUnitChangeV1, UnscheduleRecurringTaskInstanceGenerationRequest } from '@platform/contracts';
import { createTestBroker, eventually, type ReceivedMessage, type TestBroker } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { type Channel, type ChannelModel, connect } from 'amqplib';
import fc from 'fast-check';
import { Consume, type ConsumeContext, Respond } from '../src/index';
import { businessUnitChange } from './messages';
import { createInboxDatabase, effects, startMessagingApp, stopGracefully } from './messaging-app';

const REQUESTS = 'poison.requests';
const EVENTS = 'poison.events';
const JSON_TYPE = 'application/json';

/** Records the facility or business unit of each message that it handles. */
class Handlers {
  @Respond(UnscheduleRecurringTaskInstanceGenerationRequest, { queue: REQUESTS })
  async unschedule(
    { facilityId }: UnscheduleRecurringTaskInstanceGenerationRequest,
    { transaction }: ConsumeContext,
  ) {
    await transaction.query('INSERT INTO messaging.effects (note) VALUES ($1)', [`facility ${facilityId}`]);
    return { succeeded: { facilityId, removed: true } };
  }

  @Consume(BusinessUnitChangeV1, { queue: EVENTS, retryDelaysMs: [100] })
  async change({ businessUnitId }: BusinessUnitChangeV1, { transaction }: ConsumeContext): Promise<void> {
    await transaction.query('INSERT INTO messaging.effects (note) VALUES ($1)', [`unit ${businessUnitId}`]);
  }
}

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

describe('a poison message', () => {
  let database: TestDatabase;
  let broker: TestBroker;
  let app: INestApplicationContext;
  let connection: ChannelModel;
  let channel: Channel;

  beforeAll(async () => {
    [database, broker] = await Promise.all([createInboxDatabase(), createTestBroker()]);
    app = await startMessagingApp({ databaseUrl: database.url, mainUrl: broker.url, handlers: [Handlers] });
    connection = await connect(broker.url);
    channel = await connection.createChannel();
    await eventually(async () => {
      for (const queue of [REQUESTS, EVENTS]) expect((await channel.checkQueue(queue)).consumerCount).toBe(1);
    });
  });
  afterEach(async () => {
    for (const queue of [`${REQUESTS}_error`, `${EVENTS}_error`]) await channel.purgeQueue(queue);
    await database.query('DELETE FROM messaging.effects');
  });
  afterAll(async () => {
    await connection.close();
    await stopGracefully(app);
    await Promise.all([broker.drop(), database.drop()]);
  });

  const send = (queue: string, body: string | Buffer, options: object = {}): void => {
    channel.sendToQueue(queue, Buffer.from(body), { contentType: JSON_TYPE, ...options });
  };
  const take = (queue: string, timeoutMs = 10_000): Promise<ReceivedMessage> =>
    eventually(
      async () => {
        const [message] = await broker.management.get(queue, 1);
        if (message === undefined) throw new Error(`${queue} is empty`);
        return message;
      },
      { timeoutMs },
    );

  it.each([
    ['nested deeper than any contract', `{"facilityId":${nested(20_000)}}`, 'unreadable'],
    ['nested deeper within an envelope', `{"messageType":[],"message":{"x":${nested(500)}}}`, 'unreadable'],
    ['larger than any contract', `{"facilityId":"${'x'.repeat(1_100_000)}"}`, 'unreadable'],
    [
      'not UTF-8',
      Buffer.from([...Buffer.from('{"facilityId":1,"x":"'), 0xc3, 0x28, 0x22, 0x7d]),
      'unreadable',
    ],
    ['an overlong encoding', Buffer.from([...Buffer.from('{"x":"'), 0xc0, 0x80, 0x22, 0x7d]), 'unreadable'],
    ['against its contract', '{"facilityId":"501"}', 'invalid'],
  ])('is parked at once, with the reason: %s', async (_what, body, reason) => {
    send(REQUESTS, body, { replyTo: 'nobody' });
    const { headers } = await take(`${REQUESTS}_error`, 1_500);
    expect(headers).toMatchObject({
      'x-error-reason': reason,
      'MT-Fault-Message': expect.any(String),
    });
  });

  it.each([
    ['long', { long: 'x'.repeat(65_200) }],
    ['many', Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`header-${n}`, 'x'.repeat(90)]))],
    ['deeply nested', { nested: nestedTable(60), other: 'x'.repeat(64_000) }],
  ])('is parked even if its headers are %s', async (_what, headers) => {
    send(REQUESTS, '{"facilityId":"501"}', { headers: { tenant: 'acme', ...headers } });
    const parked = await take(`${REQUESTS}_error`, 1_500);
    expect(parked.body).toBe('{"facilityId":"501"}');
    expect(parked.headers).toMatchObject({ 'x-error-reason': 'invalid', tenant: 'acme' });
    expect(parked.headers).toHaveProperty('x-headers-dropped');
  });

  it.each([
    ['that no client encodes', { odd: { '!': 'evil', value: 1 } }],
    ['nested a thousand deep', { deep: nestedTable(1_000) }],
  ])('is parked even if its headers hold a table %s', async (_what, headers) => {
    await broker.management.publish('', {
      routingKey: REQUESTS,
      body: '{"facilityId":"501"}',
      properties: { content_type: JSON_TYPE, headers: { tenant: 'acme', ...headers } },
    });
    const parked = await take(`${REQUESTS}_error`, 3_000);
    expect(parked.headers).toMatchObject({ 'x-error-reason': 'invalid' });
    expect(parked.headers).toHaveProperty('x-headers-dropped');
  });

  it('does not break the connection with a header table that would exhaust the stack of a recursive decoder', async () => {
    sendDeepHeaders(connection, channel, { queue: EVENTS, body: '{"businessUnitId":"1"}', depth: 8_000 });
    send(EVENTS, JSON.stringify(businessUnitChange({ businessUnitId: 801 })));
    const parked = await take(`${EVENTS}_error`, 5_000);
    expect(parked.body).toBe('{"businessUnitId":"1"}');
    expect(parked.headers).toMatchObject({ 'x-error-reason': 'invalid', 'x-headers-dropped': 1 });
    // If the connection had broken, the delivery would have been returned and counted.
    expect(parked.headers).not.toHaveProperty('x-delivery-count');
    await eventually(async () => expect(await effects(database)).toEqual(['unit 801']));
  });

  it.each([
    ['invalid', `${EVENTS}_error`, EVENTS, '{"bad":true}', {}],
    ['of an unknown type', `${EVENTS}_skipped`, EVENTS, '{}', { type: 'Unknown' }],
    ['a request without an id', `${REQUESTS}_error`, REQUESTS, '{"facilityId":"501"}', {}],
  ])(
    "is not forwarded to its sender's CC and BCC queues: %s",
    async (_what, parkingQueue, queue, body, properties) => {
      const named = `poison.named.${randomUUID()}`;
      await channel.assertQueue(named);
      send('nowhere', body, {
        headers: { tenant: 'acme', CC: [queue], BCC: [named], cc: [named], Bcc: [named] },
        ...properties,
      });
      await eventually(async () => expect((await channel.checkQueue(parkingQueue)).messageCount).toBe(1));
      // The only message there is the one from the sender's own publish.
      await eventually(async () => expect((await channel.checkQueue(named)).messageCount).toBe(1));
      // A second message is parked after everything that the first could have caused.
      send(queue, body, properties);
      await eventually(async () => expect((await channel.checkQueue(parkingQueue)).messageCount).toBe(2));
      expect((await channel.checkQueue(named)).messageCount).toBe(1);
      const parked = await broker.management.get(parkingQueue, 2);
      expect(parked).toHaveLength(2);
      for (const { headers } of parked)
        expect(Object.keys(headers).filter((name) => /^b?cc$/i.test(name))).toEqual([]);
      await channel.purgeQueue(parkingQueue);
      await channel.deleteQueue(named);
    },
  );

  it('does not delay or lose other messages, whatever its position', async () => {
    const poisons: ((unit: number) => void)[] = [
      () => send(EVENTS, `{"businessUnitId":${nested(20_000)}}`),
      () => send(EVENTS, '{"businessUnitId":"1"}', { headers: { long: 'x'.repeat(65_200) } }),
      () => send(EVENTS, Buffer.from([0xff, 0xfe])),
      () => send(EVENTS, '{}', { contentType: 'text/plain' }),
    ];
    const positions = fc.array(fc.nat(99), { minLength: 60, maxLength: 60 });
    const [chosen] = fc.sample(positions, 1) as [number[]];
    const startedAt = performance.now();
    for (let unit = 0; unit < 100; unit += 1) {
      send(EVENTS, JSON.stringify(businessUnitChange({ businessUnitId: unit })), { messageId: randomUUID() });
      for (const [index, position] of chosen.entries())
        if (position === unit) poisons[index % poisons.length]?.(unit);
    }
    await eventually(async () => expect(await effects(database)).toHaveLength(100), { timeoutMs: 10_000 });
    await eventually(async () => expect((await channel.checkQueue(`${EVENTS}_error`)).messageCount).toBe(60));
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  }, 30_000);

  it('is carried out once, with a limited number of tries to send a refused response', async () => {
    const full = `poison.full.${randomUUID()}`;
    await channel.assertQueue(full, { arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' } });
    channel.sendToQueue(full, Buffer.from('{}'));
    // Without any id, only the delivery itself distinguishes the request from another.
    send(REQUESTS, '{"facilityId":601}', { replyTo: full });
    send(REQUESTS, '{"facilityId":602}', {
      headers: { 'MT-Response-Address': 'exchange:amq.rabbitmq.trace' },
    });
    const parked = [await take(`${REQUESTS}_error`, 30_000), await take(`${REQUESTS}_error`, 30_000)];
    for (const { headers } of parked) expect(headers).toMatchObject({ 'x-error-reason': 'unanswered' });
    expect((await effects(database)).toSorted()).toEqual(['facility 601', 'facility 602']);
    await channel.deleteQueue(full);
  }, 60_000);

  it('without an id is applied once if it is an event, and each time if it is a request', async () => {
    const event = JSON.stringify(businessUnitChange({ businessUnitId: 701 }));
    for (let times = 0; times < 3; times += 1) send(EVENTS, event);
    for (let times = 0; times < 2; times += 1) send(REQUESTS, '{"facilityId":702}');
    send(EVENTS, JSON.stringify(businessUnitChange({ businessUnitId: 703 })));
    await eventually(async () =>
      expect((await effects(database)).toSorted()).toEqual([
        'facility 702',
        'facility 702',
        'unit 701',
        'unit 703',
      ]),
    );
  });
});

function nestedTable(depth: number): object {
  return depth === 0 ? {} : { n: nestedTable(depth - 1) };
}

/**
 * Publishes a message whose header table is nested too deep for amqplib's encoder. Writes the frames by hand.
 */
function sendDeepHeaders(
  { connection }: ChannelModel,
  channel: Channel,
  { queue, body, depth }: { queue: string; body: string; depth: number },
): void {
  const { ch } = channel as unknown as { ch: number };
  const frame = (type: number, payload: Buffer): Buffer => {
    const head = Buffer.from([type, 0, ch, 0, 0, 0, 0]);
    head.writeUInt32BE(payload.length, 3);
    return Buffer.concat([head, payload, Buffer.from([0xce])]);
  };
  const short = (text: string): Buffer => Buffer.from([text.length, ...Buffer.from(text)]);
  const table = Buffer.alloc(7 * depth);
  for (let level = 0; level < depth; level += 1) {
    table.write('\u0001nF', 7 * level, 'latin1');
    table.writeUInt32BE(7 * (depth - level - 1), 7 * level + 3);
  }
  const properties = Buffer.alloc(14);
  properties.writeUInt16BE(60, 0);
  properties.writeBigInt64BE(BigInt(Buffer.byteLength(body)), 4);
  properties.writeUInt16BE(0xa000, 12);
  const tableLength = Buffer.alloc(4);
  tableLength.writeUInt32BE(table.length);
  const publish = Buffer.concat([
    Buffer.from([0, 60, 0, 40, 0, 0]),
    short(''),
    short(queue),
    Buffer.from([0]),
  ]);
  const { stream } = connection as unknown as { stream: NodeJS.WritableStream };
  stream.write(
    Buffer.concat([
      frame(1, publish),
      frame(2, Buffer.concat([properties, short(JSON_TYPE), tableLength, table])),
      frame(3, Buffer.from(body)),
    ]),
  );
}
