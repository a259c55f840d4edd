import { BROKEN, SILENT, ok, problem, scripted } from '../test/scripted-service';

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('Transport', () => {
  describe('retries', () => {
    it.each([
      ['network errors', BROKEN],
      ['408', problem(408)],
      ['429', problem(429)],
      ['500', problem(500)],
      ['503', problem(503)],
      [
        'truncated bodies',
        () => new Response(new ReadableStream({ pull: (stream) => stream.error(new TypeError('reset')) })),
      ],
    ])('retries five times on %s, after 200 ms doubled each time', async (_kind, step) => {
      const { client, time, requests } = scripted([step]);
      await expect(client.getValue('S', 'n')).rejects.toMatchObject({
        name: 'SettingsUnavailableError',
        attempts: 6,
      });
      expect(requests).toHaveLength(6);
      expect(time.waits).toEqual([200, 400, 800, 1_600, 3_200]);
    });

    it('waits half as long with the lowest random value', async () => {
      const { client, time } = scripted([BROKEN]);
      time.random = () => 0;
      await expect(client.getValue('S', 'n')).rejects.toThrow();
      expect(time.waits).toEqual([100, 200, 400, 800, 1_600]);
    });

    it.each([400, 403, 409, 412, 422, 501, 505])('does not retry on %d', async (status) => {
      const { client, requests } = scripted([problem(status)]);
      await expect(client.getValue('S', 'n')).rejects.toMatchObject({
        status,
        problem: { detail: `answer ${String(status)}` },
      });
      expect(requests).toHaveLength(1);
    });

    it('succeeds with the first successful response', async () => {
      const { client, time } = scripted([BROKEN, problem(503), ok('1')]);
      expect(await client.getValue('S', 'n')).toBe(1);
      expect(time.waits).toEqual([200, 400]);
    });

    it('honours Retry-After up to 5 s', async () => {
      const { client, time } = scripted([
        problem(429, undefined, { 'retry-after': '3' }),
        problem(503, undefined, { 'retry-after': '3600' }),
        problem(503, undefined, { 'retry-after': 'Mon, 05 Jan 2026 00:00:10 GMT' }),
        ok('1'),
      ]);
      await client.getValue('S', 'n');
      expect(time.waits).toEqual([3_000, 5_000, 2_000]);
    });

    it('aborts an attempt at its timeout, and retries', async () => {
      const { client, time, requests } = scripted([SILENT, ok('1')]);
      const value = client.getValue('S', 'n');
      while (time.attemptsUnderWay === 0) await settle();
      time.expireAttempts();
      expect(await value).toBe(1);
      expect(requests).toHaveLength(2);
      expect(time.attemptsUnderWay).toBe(0);
    });

    it('takes the retries of all calls from one budget', async () => {
      const { client, requests } = scripted([BROKEN], { retryBudget: { capacity: 7 } });
      await expect(client.getValue('S', 'a')).rejects.toMatchObject({ attempts: 6 });
      await expect(client.getValue('S', 'b')).rejects.toMatchObject({ attempts: 3 });
      await expect(client.getValue('S', 'c')).rejects.toMatchObject({ attempts: 1 });
      expect(requests).toHaveLength(10);
    });

    it('retries each call five times, however many calls failed before', async () => {
      const { client, requests } = scripted([BROKEN]);
      for (let call = 0; call < 25; call += 1)
        await expect(client.getValue('S', 'a')).rejects.toMatchObject({ attempts: 6 });
      expect(requests).toHaveLength(25 * 6);
    });

    it("rejects at once with the caller's reason when the caller aborts", async () => {
      const reason = new Error('enough');
      const before = scripted([ok('1')]);
      await expect(before.client.getValue('S', 'n', { signal: AbortSignal.abort(reason) })).rejects.toBe(
        reason,
      );
      expect(before.requests).toHaveLength(0);
      const during = scripted([SILENT]);
      const controller = new AbortController();
      const value = during.client.getValue('S', 'n', { signal: controller.signal });
      while (during.requests.length === 0) await settle();
      controller.abort(reason);
      await expect(value).rejects.toBe(reason);
      expect(during.requests).toHaveLength(1);
      const between = scripted([BROKEN]);
      const stop = new AbortController();
      between.time.random = () => {
        stop.abort(reason);
        return 1;
      };
      await expect(between.client.getValue('S', 'n', { signal: stop.signal })).rejects.toBe(reason);
      expect(between.requests).toHaveLength(1);
    });

    it('rejects when the caller aborts while the token is awaited', async () => {
      const token = () => new Promise<string>(() => undefined);
      const { client, requests } = scripted([ok('1')], { token });
      const controller = new AbortController();
      const value = client.getValue('S', 'n', { signal: controller.signal });
      await settle();
      const reason = new Error('enough');
      controller.abort(reason);
      await expect(value).rejects.toBe(reason);
      expect(requests).toHaveLength(0);
    });
  });

  describe('tokens', () => {
    it('gets a new token once after a 401', async () => {
      const tokens = ['old', 'new'];
      const refused: string[] = [];
      const token = {
        getToken: () => Promise.resolve(tokens[0] ?? ''),
        invalidate: (each: string) => {
          refused.push(each);
          tokens.shift();
        },
      };
      const { client, requests, time } = scripted([problem(401), ok('1')], { token });
      expect(await client.getValue('S', 'n')).toBe(1);
      expect(requests.map(({ headers }) => headers.get('authorization'))).toEqual([
        'Bearer old',
        'Bearer new',
      ]);
      expect(refused).toEqual(['old']);
      expect(time.waits).toEqual([]);
    });

    it('gives up on a second 401', async () => {
      let issued = 0;
      const { client, requests } = scripted([problem(401)], {
        token: () => `token ${String((issued += 1))}`,
      });
      await expect(client.getValue('S', 'n')).rejects.toMatchObject({
        name: 'SettingsHttpError',
        status: 401,
      });
      expect(requests).toHaveLength(2);
    });

    it('does not retry a 401 with the same token', async () => {
      const { client, requests } = scripted([problem(401)]);
      await expect(client.getValue('S', 'n')).rejects.toMatchObject({ status: 401 });
      expect(requests).toHaveLength(1);
    });

    it('never shows a token in an error', async () => {
      const { client } = scripted([BROKEN], { token: 's3cret' });
      const error: unknown = await client.getValue('S', 'n').catch((caught: unknown) => caught);
      expect(JSON.stringify(error) + String(error) + String((error as Error).stack)).not.toContain('s3cret');
    });
  });
});
