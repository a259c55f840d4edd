import { connect } from 'node:net';
import {
  Body,
  Controller,
  Get,
  HttpException,
  Module,
  NotFoundException,
  Param,
  Post,
  Put,
  Query,
} from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createZodDto } from 'nestjs-zod/dto';
import request from 'supertest';
import { z } from 'zod';
import { createServiceApplication, loadConfig, problems, serviceConfigShape } from '../src';

class Note extends createZodDto(
  z.object({
    text: z.string().min(1),
    tags: z.array(z.string()).optional(),
    at: z.iso.datetime({ offset: true }).optional(),
    id: z.guid().optional(),
  }),
) {}

@Controller('notes')
class NotesController {
  @Get(':id')
  get(@Param('id') id: string): object {
    if (id === 'missing') throw new NotFoundException();
    if (id === 'teapot') throw new HttpException('short and stout', 418);
    if (id === 'broken') throw new Error('password=hunter2');
    if (id === 'busy') throw problems.serviceUnavailable('Try later.', 3);
    return { id };
  }

  @Post()
  create(@Body() note: Note): object {
    return { text: note.text };
  }

  @Put(':id/any')
  put(@Body() body: unknown): object {
    return { received: body ?? null };
  }

  @Get()
  list(@Query('q') q?: string): object {
    return { q: q ?? null };
  }
}

@Module({ controllers: [NotesController] })
class NotesModule {}

const config = loadConfig(z.object(serviceConfigShape), {
  NODE_ENV: 'test',
  PORT: '0',
  METRICS_PORT: '0',
  LOG_LEVEL: 'silent',
  DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
});

describe('errors of a service', () => {
  let app: NestFastifyApplication;
  let http: ReturnType<typeof request>;

  beforeAll(async () => {
    app = await createServiceApplication({
      name: 'notes',
      title: 'Notes',
      config,
      rootModule: NotesModule,
      bodyLimitBytes: 3_000,
      acceptsForms: true,
    });
    await app.listen(0, '127.0.0.1');
    http = request(app.getHttpServer());
  });

  afterAll(() => app.close());

  function expectProblem(response: request.Response, status: number): void {
    expect(response.status).toBe(status);
    expect(response.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(response.body).toMatchObject({ status, title: expect.any(String), type: expect.any(String) });
    expect(response.body.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(response.body.instance).toMatch(/^\//);
  }

  const json = (body: string): request.Test =>
    http.post('/notes').set('content-type', 'application/json').send(body);

  it.each([
    ['cut short', '{"text":'],
    ['not JSON at all', 'hello'],
    ['a trailing comma', '{"text":"a",}'],
    ['nested 1,025 deep', '['.repeat(1_025) + ']'.repeat(1_025)],
  ])('responds with 400 to a body that is %s', async (_what, body) => {
    const response = await json(body);
    expectProblem(response, 400);
    expect(JSON.stringify(response.body)).not.toContain('hello');
  });

  it.each(['/notes/1', '/notes/missing', '/notes/broken', '/nowhere', '/%zz'])(
    'forbids caching and content sniffing of the response to %s',
    async (path) => {
      const { headers } = await http.get(path);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['cache-control'] ?? 'no-store').toBe('no-store');
    },
  );

  it('responds with 400 to a body that is not UTF-8', async () => {
    const agent = http.post('/notes').set('content-type', 'application/json');
    agent.write(Buffer.from([0x7b, 0xff, 0x7d]));
    expectProblem(await agent, 400);
  });

  it('names the fields that are wrong', async () => {
    const response = await json('{"text":"","tags":["a",7]}');
    expectProblem(response, 400);
    expect(Object.keys(response.body.errors)).toEqual(['text', 'tags.1']);
  });

  it('treats a key named __proto__ as an ordinary key', async () => {
    const response = await http
      .put('/notes/1/any')
      .set('content-type', 'application/json')
      .send('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}');
    expect(response.status).toBe(200);
    expect(response.text).toContain('"__proto__":{"admin":true}');
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it('treats an empty JSON body as no body', async () => {
    const response = await http.put('/notes/1/any').set('content-type', 'application/json');
    expect(response.body).toEqual({ received: null });
    expectProblem(await http.post('/notes').set('content-type', 'application/json'), 400);
  });

  it('responds with 413 to a body over the limit, with and without a declared length', async () => {
    expectProblem(await json(JSON.stringify({ text: 'x'.repeat(4_000) })), 413);
    const chunked = http.post('/notes').set('content-type', 'application/json');
    chunked.write(`{"text":"${'x'.repeat(3_000)}`);
    expectProblem(await chunked, 413);
  });

  it.each(['content-length', 'transfer-encoding'])(
    'lets a client that sends its whole long body first read the 413 (%s)',
    async (framing) => {
      const body = 'x'.repeat(20_000_000);
      const head = `POST /notes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`;
      const framed =
        framing === 'content-length'
          ? `${head}Content-Length: ${body.length}\r\n\r\n${body}`
          : `${head}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
      const next = 'GET /notes HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
      const response = await exchange((await app.getUrl()).replace('http://', ''), framed + next);
      expect(response).toMatch(/^HTTP\/1.1 413 [^]*HTTP\/1.1 200 /);
    },
  );

  it('describes the required body, missing fields and the expected form of values', async () => {
    const text = await http.post('/notes').set('content-type', 'text/plain').send('x');
    expect(text.body.detail).toBe('The body must be JSON (application/json), in UTF-8 and uncompressed.');
    expect((await json('{"tags":"a","at":"tomorrow","id":7}')).body.errors).toEqual({
      text: ['is missing'],
      tags: ['must be an array'],
      at: ['must be a date and time with an offset, such as 2026-04-01T09:00:00Z'],
      id: ['must be a string'],
    });
  });

  it.each([['text/plain'], ['application/xml'], ['application/json; charset=utf-16'], ['nonsense']])(
    'responds with 415 to %s',
    async (type) => {
      expectProblem(await http.post('/notes').set('content-type', type).send('{"text":"a"}'), 415);
    },
  );

  it('accepts a form of 64 fields and responds with 400 to more, whatever their size', async () => {
    const form = (fields: number): request.Test =>
      http
        .put('/notes/1/any')
        .set('content-type', 'application/x-www-form-urlencoded')
        .send(Array.from({ length: fields }, (_none, index) => `f${String(index)}=1`).join('&'));
    const accepted = await form(64);
    expect(Object.keys((accepted.body as { received: object }).received)).toHaveLength(64);
    expectProblem(await form(65), 400);
    expectProblem(
      await http
        .put('/notes/1/any')
        .set('content-type', 'application/x-www-form-urlencoded')
        .send('&'.repeat(2_900)),
      400,
    );
  });

  it('responds with 415 to a compressed body', async () => {
    const response = await http
      .post('/notes')
      .set('content-type', 'application/json')
      .set('content-encoding', 'gzip')
      .send('{}');
    expectProblem(response, 415);
  });

  it.each(['/notes/%', '/notes/%zz', '/notes/%c0%ae', '/%'])(
    'responds with 400 to the address %s',
    async (path) => {
      expectProblem(await http.get(path), 400);
    },
  );

  it('accepts parameters of 4 KiB and responds with 414 to longer ones', async () => {
    expect((await http.get(`/notes/${'x'.repeat(4_096)}`)).status).toBe(200);
    expectProblem(await http.get(`/notes/${'x'.repeat(4_097)}`), 414);
  });

  it.each(['/', '/nothing', '/notes/1/2/3', '/notes//any'])(
    'responds with 404 to the unknown address %s',
    async (path) => {
      expectProblem(await http.get(path), 404);
    },
  );

  it('responds with 405 and Allow if other methods are served', async () => {
    const response = await http.delete('/Notes/1/');
    expectProblem(response, 405);
    expect(response.headers['allow']).toBe('GET, HEAD');
    expect((await http.patch('/notes')).headers['allow']).toBe('GET, HEAD, POST');
    expectProblem(await http.options('/notes'), 405);
  });

  it('matches routes case-insensitively, ignores a trailing slash, and keeps the case of values', async () => {
    expect((await http.get('/NOTES/AbC/')).body).toEqual({ id: 'AbC' });
  });

  it.each([
    ['missing', 404],
    ['teapot', 418],
    ['busy', 503],
    ['broken', 500],
  ])('responds to an exception of a handler (%s) with %i', async (id, status) => {
    expectProblem(await http.get(`/notes/${id}`), status);
  });

  it('reveals nothing about an unexpected error', async () => {
    const response = await http.get('/notes/broken');
    expect(response.text).not.toContain('hunter2');
    expect(response.body.title).toBe('Internal Server Error');
  });

  it('sends Retry-After', async () => {
    expect((await http.get('/notes/busy')).headers['retry-after']).toBe('3');
  });

  it("omits the query from problems and continues the caller's trace", async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const response = await http
      .get('/nothing?bearerTokenOverride=abc')
      .set('traceparent', `00-${traceId}-00f067aa0ba902b7-01`);
    expect(response.body).toMatchObject({ instance: '/nothing', traceId });
  });

  it.each([
    ['a malformed request line', 'GET\r\n\r\n', 400],
    ['headers over 32 KiB', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
    ['two lengths', 'POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
    ['HTTP/2.0', 'GET / HTTP/2.0\r\nHost: a\r\nConnection: close\r\n\r\n', 400],
    ['HTTP/3.7', 'GET / HTTP/3.7\r\nHost: a\r\n\r\n', 400],
    ['two hosts', 'GET /notes HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n', 400],
    ['no host', 'GET /notes HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['a NUL in a header', 'GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n', 400],
  ])('responds to %s with a problem and closes the connection', async (_what, bytes, status) => {
    const response = await exchange((await app.getUrl()).replace('http://', ''), bytes);
    expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(response).toContain('application/problem+json');
    expect(response).toMatch(/connection: close/i);
  });
});

function exchange(address: string, bytes: string): Promise<string> {
  const [host, port] = address.split(':');
  return new Promise((resolve, reject) => {
    let response = '';
    const socket = connect(Number(port), host, () => socket.write(bytes));
    socket.on('data', (chunk) => (response += chunk.toString()));
    socket.on('error', reject);
    socket.on('close', () => resolve(response));
  });
}
