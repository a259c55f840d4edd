import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Difference } from './expectations.ts';
import { Narrator } from './narrator.ts';
import { readTourSettings, Walk } from './walk.ts';

describe('Walk', () => {
  let server: Server | undefined;
  let shown: string;
  let walk: Walk;

  beforeEach(() => {
    shown = '';
    const screen = { write: (text: string) => void (shown += text), width: 100, colour: false };
    walk = new Walk(new Narrator(screen), readTourSettings({}));
  });

  afterEach(() => server?.close());

  function serve(listener: RequestListener): Promise<string> {
    const listening = (server = createServer(listener));
    return new Promise((resolve) => {
      listening.listen(0, '127.0.0.1', () => {
        resolve(`http://127.0.0.1:${(listening.address() as AddressInfo).port}`);
      });
    });
  }

  const isOk = 'As it should be.';

  it('shows request, response and explanation of a step', async () => {
    const url = await serve((request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(`{"method":"${request.method}"}`);
    });
    const response = await walk.step('Ask', { method: 'POST', url, token: 'secret', body: { a: 1 } }, isOk);
    expect(response.json).toEqual({ method: 'POST' });
    expect(shown.replace(/\d+ ms/, 'N ms')).toBe(`
  1  Ask
     POST   ${url}
            authorization: Bearer secret
            {"a":1}
     200    N ms
            {"method":"POST"}
     ✓      As it should be.
`);
  });

  it('sends URLSearchParams as a form', async () => {
    const url = await serve((request, response) => {
      response.write(`${request.headers['content-type']} `);
      request.pipe(response);
    });
    const body = new URLSearchParams({ login: 'carl', note: 'a b' });
    const response = await walk.step('Post', { method: 'POST', url, body }, isOk);
    expect(response.text).toBe('application/x-www-form-urlencoded login=carl&note=a+b');
    expect(shown).toContain('login=carl&note=a+b\n');
  });

  it('stops at a response that is not as it should be', async () => {
    const url = await serve((_request, response) => response.writeHead(500).end());
    await expect(walk.step('Ask', { url }, isOk)).rejects.toMatchObject({
      what: 'the status',
      expected: '200',
      actual: '500',
    });
    expect(shown).not.toContain('✓');
  });

  it('asks again until the response is right and says how often', async () => {
    let asked = 0;
    const url = await serve((_request, response) => response.writeHead(++asked < 3 ? 404 : 200).end());
    await walk.stepUntil('Wait', { url }, isOk, 5_000);
    expect(shown).toContain('asked 3 times');
  });

  it('gives up when the time is over, with the last difference', async () => {
    const url = await serve((_request, response) => response.writeHead(404).end());
    await expect(walk.stepUntil('Wait', { url }, isOk, 150)).rejects.toMatchObject({
      actual: '404',
    });
    expect(shown).toContain('150 ms were allowed');
  });

  it('names the address and the reason when nothing responds', async () => {
    const url = await serve((_request, response) => response.end());
    await new Promise((resolve) => server?.close(resolve));
    const refused = walk.step('Ask', { url }, isOk);
    await expect(refused).rejects.toBeInstanceOf(Difference);
    await expect(refused).rejects.toMatchObject({ what: url, expected: 'a response' });
  });
});

describe('Narrator', () => {
  it('keeps every line within the width and colours only if the screen allows it', () => {
    const lines: string[] = [];
    const screen = { write: (text: string) => void lines.push(text), width: 60, colour: true };
    new Narrator(screen).explanation('yes');
    expect(lines.join('')).toContain('\u001b[32m');
    lines.length = 0;
    new Narrator({ ...screen, colour: false }).request(
      'GET',
      'http://x'.padEnd(200, 'y'),
      {},
      'b'.repeat(200),
    );
    expect(lines.join('')).not.toContain('\u001b');
    for (const line of lines) expect(line.trimEnd().length).toBeLessThanOrEqual(60);
  });
});

describe('readTourSettings', () => {
  it('uses the table of default ports without variables', () => {
    expect(readTourSettings({})).toMatchObject({
      auth: 'http://127.0.0.1:3001',
      settings: 'http://127.0.0.1:3002',
      task: 'http://127.0.0.1:3003',
      receiver: 'http://127.0.0.1:3013',
    });
  });

  it('prefers a variable to the running platform, and that to the default and drops a trailing slash', () => {
    const settings = readTourSettings(
      { AUTH_URL: 'http://auth.test/' },
      { AUTH_URL: 'http://127.0.0.1:1', TASK_URL: 'http://127.0.0.1:2' },
    );
    expect(settings).toMatchObject({ auth: 'http://auth.test', task: 'http://127.0.0.1:2' });
  });
});
