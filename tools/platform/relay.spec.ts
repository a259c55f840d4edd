import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { eventually } from '@platform/testing';
import { Relay } from './relay.ts';

describe('Relay', () => {
  let server: Server;
  let relay: Relay;
  let client: Socket;
  const heardByServer: string[] = [];
  let serverSide: Socket;

  beforeEach(async () => {
    heardByServer.length = 0;
    server = createServer((socket) => {
      serverSide = socket;
      socket.on('error', () => undefined);
      socket.on('data', (data) => {
        heardByServer.push(data.toString());
        socket.write(data);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    relay = new Relay(() => (server.address() as AddressInfo).port);
    const port = await freePort();
    await relay.listen(port);
    client = connect(port, '127.0.0.1');
    client.on('error', () => undefined);
    client.write('hello');
    expect(String((await once(client, 'data'))[0])).toBe('hello');
  });

  afterEach(() => {
    client.destroy();
    relay.close();
    server.close();
  });

  it('resets both sides', async () => {
    expect(relay.reset()).toBe(1);
    await eventually(() => expect(client.destroyed).toBe(true));
    await eventually(() => expect(serverSide.destroyed).toBe(true));
    expect(relay.connections).toBe(0);
  });

  it('holds bytes back while stalled and delivers them afterwards', async () => {
    expect(relay.stall()).toBe(1);
    client.write(' later');
    await new Promise(setImmediate);
    expect(heardByServer).toEqual(['hello']);
    relay.resume();
    await eventually(() => expect(heardByServer.join('')).toBe('hello later'));
  });

  it('leaves a client in the dark whose server has gone', async () => {
    expect(relay.halfOpen()).toBe(1);
    await eventually(() => expect(serverSide.destroyed).toBe(true));
    client.write('anybody?');
    await new Promise(setImmediate);
    expect(client.destroyed).toBe(false);
    expect(heardByServer).toEqual(['hello']);
    expect(relay.halfOpen()).toBe(0);
  });
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
