import { inspect } from 'node:util';
import { TcpProxy, createTestBroker, type TestBroker } from '@platform/testing';
import { BusUnavailableError, connectBus } from '../src/index';

const PASSWORD = 'hunter2-is-a-secret';

describe('connectBus', () => {
  let broker: TestBroker;

  beforeAll(async () => {
    broker = await createTestBroker();
  });

  afterAll(() => broker.drop());

  /** Returns the error and the log output of one failed attempt to connect. */
  async function failure(url: string): Promise<{ error: unknown; output: string }> {
    const lines: unknown[] = [];
    const note = (...line: unknown[]): void => {
      lines.push(...line);
    };
    const logger = { log: note, warn: note, error: note, debug: note, verbose: note };
    const options = { url, name: 'stranger', timeoutMs: 700, logger };
    const error: unknown = await connectBus(options).catch((reason: unknown) => reason);
    return { error, output: inspect([lines, error], { depth: 10 }) };
  }

  it('gives up in time on a broker that refuses the password, and does not repeat it', async () => {
    const url = new URL(broker.url);
    url.password = PASSWORD;
    const { error, output } = await failure(url.toString());
    expect(error).toBeInstanceOf(BusUnavailableError);
    expect(output).toContain('ACCESS_REFUSED');
    expect(output).not.toContain(PASSWORD);
  });

  it('gives up in time on an address without a listener', async () => {
    const proxy = await TcpProxy.start(broker.url);
    await proxy.refuse();
    const url = new URL(proxy.url);
    url.password = PASSWORD;
    const { error, output } = await failure(url.toString());
    expect(error).toBeInstanceOf(BusUnavailableError);
    expect(output).not.toContain(PASSWORD);
  });

  it.each([`not a url ${PASSWORD}`, `http://guest:${PASSWORD}@127.0.0.1`])(
    'refuses a URL like %s',
    async (url) => {
      const { error, output } = await failure(url);
      expect(error).toMatchObject({ message: 'not an AMQP URL (value withheld)' });
      expect(output).not.toContain(PASSWORD);
    },
  );
});
