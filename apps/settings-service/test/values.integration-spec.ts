import fc from 'fast-check';
import { CUSTOMER, PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

describe('values', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings();
  });
  afterAll(() => service.close());

  const path = settingPath('Values', 'any');
  const put = (body: string | Buffer) => service.api.put(path).set(PARTNER).type('json').send(body);
  const putRaw = (body: Buffer) =>
    fetch(`${service.urls[0] ?? ''}${path}`, {
      method: 'PUT',
      headers: { ...PARTNER, 'content-type': 'application/json' },
      body: new Uint8Array(body),
    });
  const bytes = async (address: string): Promise<string> => {
    const answer = await fetch(`${service.urls[0] ?? ''}${address}`, { headers: CUSTOMER });
    expect(answer.status).toBe(200);
    return Buffer.from(await answer.arrayBuffer()).toString('utf8');
  };

  async function expectKept(text: string): Promise<void> {
    const envelope = `{"subsystemName":"Values","settingName":"any","settingValue":${text}}`;
    const written = await putRaw(Buffer.from(` { "settingValue" :\n${text}\t} `, 'utf8'));
    expect([written.status, await written.text()]).toEqual([200, envelope]);
    expect(await bytes(`${path}/value`)).toBe(text);
    expect(await bytes(path)).toBe(envelope);
    expect(await bytes('/platform/v1/subsystems/values/settings')).toBe(
      `{"settings":[${envelope}],"nextPageKey":null}`,
    );
  }

  it.each([
    ['a number beyond double precision', '12345678901234567890.12345678901234567890'],
    ['a number beyond double range', '1e999999'],
    ['a negative zero', '-0'],
    ['a fraction of zero', '1.0'],
    ['a capital exponent', '1E+2'],
    ['an escaped NUL', '"a\\u0000b"'],
    ['a lone surrogate escape', '"\\uD800 \\udfff"'],
    ['needless escapes', '"\\u0041\\/\\b"'],
    [
      'unescaped separators, controls above ASCII and noncharacters',
      '"\u2028\u2029\u007f\u0085\uffff\ufdd0"',
    ],
    ['characters outside the basic plane', '"😀𐐷"'],
    ['a byte order mark inside a string', '"\ufeff"'],
    ['members named like prototype members', '{"__proto__":{"a":1},"constructor":{"prototype":2}}'],
    ['the order and repetition of members', '{"b":1,"a":2,"b":3,"":4}'],
    ['whitespace inside', '[ 1,\r\n\t2 , { "a" : null } ]'],
    ['an empty string', '""'],
    ['an empty object', '{}'],
    ['a null inside', '[null,{"a":null}]'],
    ['text that looks like SQL and HTML', '"\'; DROP TABLE settings.setting; -- <script>$1"'],
  ])('keeps %s', async (_case, text) => {
    await expectKept(text);
  });

  it('keeps arbitrary JSON', async () => {
    const text = fc.oneof(
      fc.json({ maxDepth: 4 }),
      fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value, null, 2)),
      fc.string({ unit: 'binary' }).map((value) => JSON.stringify(value)),
      fc.stringMatching(/^-?(0|[1-9][0-9]{0,60})(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,9})?$/),
    );
    await fc.assert(
      fc.asyncProperty(
        text.filter((each) => each !== 'null'),
        expectKept,
      ),
      { numRuns: 150 },
    );
    // Allows for 600 sequential requests.
  }, 120_000);

  it('keeps a value of 256 KiB and refuses one byte more with 400', async () => {
    const ofBytes = (count: number): string => `"${'x'.repeat(count - 2)}"`;
    await expectKept(ofBytes(256 * 1024));
    await put(`{"settingValue":${ofBytes(256 * 1024 + 1)}}`).expect(400);
    await put(`{"settingValue":"${'é'.repeat(128 * 1024)}"}`).expect(400);
  });

  it('keeps a value nested 512 deep and refuses 513 with 400', async () => {
    const nested = (depth: number): string => `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`;
    await expectKept(nested(512));
    await put(`{"settingValue":[${nested(512)}]}`).expect(400);
    await put(`{"settingValue":1,"other":[${nested(512)}]}`).expect(400);
    await put(`{"settingValue":${'['.repeat(200_000)}}`).expect(400);
  });

  it('accepts a body of 512 KiB and refuses one byte more with 413', async () => {
    const bodyOf = (count: number): string => '{"settingValue":1}'.padEnd(count);
    await put(bodyOf(512 * 1024)).expect(200);
    const answer = await put(bodyOf(512 * 1024 + 1)).expect(413);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  });

  it.each([
    ['nothing', ''],
    ['no JSON', 'EUR'],
    ['an array', '["settingValue"]'],
    ['no settingValue', '{"settingvalue":1}'],
    ['a null settingValue', '{"settingValue":null}'],
    ['two settingValues', '{"settingValue":1,"settingValue":1}'],
    ['two settingValues, one escaped', '{"settingValue":1,"\\u0073ettingValue":2}'],
    ['a truncated body', '{"settingValue":1'],
    ['text after the body', '{"settingValue":1}{}'],
    ['a byte order mark', '\ufeff{"settingValue":1}'],
    ['a trailing comma', '{"settingValue":[1,]}'],
    ['a raw control character', '{"settingValue":"a\u0001"}'],
    ['a comment', '{"settingValue":1/**/}'],
    ['NaN', '{"settingValue":NaN}'],
  ])('refuses %s with 400 and repeats nothing of the content', async (_case, body) => {
    const answer = await put(body).expect(400);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(answer.body).toMatchObject({ status: 400, title: 'Invalid setting value' });
    expect(answer.body.errors.settingValue).toEqual([expect.any(String)]);
  });

  it('refuses bytes that are not UTF-8 with 400', async () => {
    for (const wrong of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
      const body = Buffer.concat([Buffer.from('{"settingValue":"'), Buffer.from(wrong), Buffer.from('"}')]);
      expect((await putRaw(body)).status).toBe(400);
    }
  });

  it('refuses a body that is not JSON by its type, or compressed, with 415', async () => {
    const body = '{"settingValue":1}';
    await service.api.put(path).set(PARTNER).type('text/plain').send(body).expect(415);
    await service.api
      .put(path)
      .set(PARTNER)
      .type('application/x-www-form-urlencoded')
      .send('a=1')
      .expect(415);
    await put(body).set('content-type', 'application/json; charset=utf-16').expect(415);
    await put(body).set('content-encoding', 'gzip').expect(415);
    await put(body).set('content-type', 'application/json; charset="UTF-8"').expect(200);
  });

  it('accepts a PlatformSetting as it was read', async () => {
    await put('{"subsystemName":"other","settingName":"other","settingValue":7}').expect(200);
    expect(await bytes(`${path}/value`)).toBe('7');
    await service.api.get(settingPath('other', 'other')).set(CUSTOMER).expect(404);
  });
});
