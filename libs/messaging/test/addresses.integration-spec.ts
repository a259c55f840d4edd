import { type Bus, TaskInstanceCompletedEvent } from '@platform/contracts';
import { TcpProxy, createTestBroker, eventually, type TestBroker } from '@platform/testing';
import { connectBus, ErrorQueues, type PlainBus } from '../src/index';
import { completedEvent } from './messages';
import { SILENT } from './messaging-app';

const QUEUE = 'addresses.completed';

describe('a bus with several brokers', () => {
  let broker: TestBroker;
  let proxies: [TcpProxy, TcpProxy];
  let url: string;
  let bus: PlainBus;
  const received: number[] = [];

  const publish = (facilityId: number): Promise<void> =>
    bus.publish(TaskInstanceCompletedEvent, completedEvent({ facilityId }));
  const connected = (): TcpProxy[] => proxies.filter(({ connections }) => connections > 0);

  beforeAll(async () => {
    broker = await createTestBroker();
    proxies = [await TcpProxy.start(broker.url), await TcpProxy.start(broker.url)];
    const { username, password, pathname } = new URL(broker.url);
    const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`).join(',');
    url = `amqp://${username}:${password}@${hosts}${pathname}`;
  });

  beforeEach(async () => {
    bus = await connectBus({ url, name: 'clustered', logger: SILENT });
    await bus.consume(TaskInstanceCompletedEvent, { queue: QUEUE }, ({ facilityId }) => {
      received.push(facilityId);
      return Promise.resolve();
    });
  });

  afterEach(async () => {
    await Promise.all(proxies.map((proxy) => proxy.restore()));
    await bus.close();
  });

  afterAll(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await broker.drop();
  });

  it('connects to the next when one refuses, and so do operator tools', async () => {
    const [first] = connected();
    await first!.refuse();
    await eventually(() => publish(1));
    await eventually(() => expect(received).toContain(1));
    expect(connected()).not.toContain(first);
    const operator = await ErrorQueues.connect('main' satisfies Bus, url);
    await operator.close();
  });

  it('abandons a frozen broker and consumes at the other', async () => {
    const [first] = connected();
    first!.freeze();
    const startedAtMs = performance.now();
    await eventually(() => publish(2), { timeoutMs: 20_000 });
    await eventually(() => expect(received).toContain(2));
    expect(performance.now() - startedAtMs).toBeLessThan(8_000);
    expect(bus.isReady()).toBe(true);
  });

  it('connects to the other when the first one tried is frozen', async () => {
    await bus.close();
    proxies[0].freeze();
    const startedAtMs = performance.now();
    const buses = await Promise.all(
      Array.from({ length: 8 }, () => connectBus({ url, name: 'late', logger: SILENT })),
    );
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
    await Promise.all(buses.map((each) => each.close()));
    bus = await connectBus({ url, name: 'clustered', logger: SILENT });
  });
});
