import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { postTo, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('large requests', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  /** Sends the whole request before reading the response, like many clients. */
  function responseTo(path: string, bytes: number): Promise<string> {
    const { port } = service.app.getHttpServer().address() as AddressInfo;
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${String(bytes)}\r\n`;
    return new Promise((resolve, reject) => {
      let received = '';
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(`${head}\r\n`);
        socket.write(Buffer.alloc(bytes, ' '), () =>
          socket.on('data', (chunk) => (received += chunk.toString())),
        );
        socket.write('GET /auth/diagnostics/ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(received));
    });
  }

  it.each([
    ['/auth/token/user', 400],
    ['/auth/token/refresh', 400],
    ['/auth/logout', 413],
    ['/nowhere', 404],
  ])(
    'of 100 MB to %s get a response, and the connection stays open',
    async (path, status) => {
      const received = await responseTo(path, 100_000_000);
      expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${String(status)} [^]*HTTP/1\\.1 200 [^]*"Pong"`));
    },
    60_000,
  );

  it('with 12,000 form fields are refused before the fields are checked', async () => {
    const fields = Array.from({ length: 12_000 }, (_none, index) => `${index.toString(36)}=`).join('&');
    const { status, body } = await postTo(service.app, '/auth/token/openId')
      .type('application/x-www-form-urlencoded')
      .send(fields);
    expect(status).toBe(400);
    expect(body).toMatchObject({ rejectionReason: 7 });
    expect((body as { rejectionDetails: string }).rejectionDetails).toContain('at most 64 fields');
  });
});
