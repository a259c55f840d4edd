import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { TcpProxy } from './tcp-proxy.ts';
import { eventually } from './waiting.ts';

describe('TcpProxy', () => {
  let server: Server;
  let proxy: TcpProxy;
  let client: Socket;
  const receivedByServer: string[] = [];
  let serverSide: Socket;

  beforeEach(async () => {
    receivedByServer.length = 0;
    server = createServer((socket) => {
      serverSide = socket;
      socket.on('error', () => undefined);
      socket.on('data', (data) => {
        receivedByServer.push(data.toString());
        socket.write(data);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy = new TcpProxy(() => ({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }));
    await proxy.listen(0);
    client = connect(proxy.port, '127.0.0.1');
    client.on('error', () => undefined);
    client.write('hello');
    expect(String((await once(client, 'data'))[0])).toBe('hello');
  });

  afterEach(() => {
    client.destroy();
    void proxy.stop();
    server.close();
  });

  it('resets both sides', async () => {
    expect(proxy.reset()).toBe(1);
    await eventually(() => expect(client.destroyed).toBe(true));
    await eventually(() => expect(serverSide.destroyed).toBe(true));
    expect(proxy.connections).toBe(0);
  });

  it('holds bytes back while frozen and delivers them afterwards', async () => {
    proxy.freeze();
    expect(proxy.connections).toBe(1);
    client.write(' later');
    await makeRoundTrip();
    expect(receivedByServer).toEqual(['hello']);
    await proxy.restore();
    await eventually(() => expect(receivedByServer.join('')).toBe('hello later'));
  });

  it('drops one response, and with it the connection', async () => {
    proxy.dropResponse('work', 'end');
    client.write('end');
    expect(String((await once(client, 'data'))[0])).toBe('end');
    client.write('work');
    expect(String((await once(client, 'data'))[0])).toBe('work');
    expect(proxy.dropsResponse).toBe(true);
    const closed = once(client, 'close');
    client.write('end');
    await closed;
    expect(receivedByServer).toEqual(['hello', 'end', 'work', 'end']);
    expect(proxy.dropsResponse).toBe(false);
  });

  it('keeps a client connected whose server connection was reset', async () => {
    expect(proxy.halfOpen()).toBe(1);
    await eventually(() => expect(serverSide.destroyed).toBe(true));
    client.write('anybody?');
    await makeRoundTrip();
    expect(client.destroyed).toBe(false);
    expect(receivedByServer).toEqual(['hello']);
    expect(proxy.halfOpen()).toBe(0);
  });
});

/**
 * Sends bytes through another proxy and back. Bytes that were written earlier have also arrived by then,
 * unless a proxy holds them back.
 */
async function makeRoundTrip(): Promise<void> {
  const echo = createServer((socket) => socket.pipe(socket));
  echo.listen(0, '127.0.0.1');
  await once(echo, 'listening');
  const proxy = await TcpProxy.start(`tcp://127.0.0.1:${(echo.address() as AddressInfo).port}`);
  const client = connect(proxy.port, '127.0.0.1');
  client.write('ping');
  await once(client, 'data');
  client.destroy();
  await proxy.stop();
  echo.close();
}
