import { isUtf8 } from 'node:buffer';
import { Agent, request as sendRequest } from 'node:http';
import fc from 'fast-check';
import { testSize } from '@platform/testing';
import { anyJsonText, damagedJsonText, grammarNoise, isJson } from './json-texts';
import { CUSTOMER, PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

const CASES = testSize('TEST_GENERATED_VALUES', { quick: 2_000, full: 10_000 });
/** The full size takes about 16 s on an idle machine with two cores. The limit leaves room for a busy one. */
const TIMEOUT_MS = 300_000;
const WORKERS = 16;
const HEAD = '{"settingValue":';

interface Answer {
  status: number;
  text: string;
}

/**
 * Generates the bytes of a value. One byte is replaced in a tenth of them, which mostly makes them invalid
 * UTF-8.
 */
const values: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.oneof(
      { weight: 3, arbitrary: anyJsonText },
      { weight: 6, arbitrary: damagedJsonText },
      { weight: 1, arbitrary: grammarNoise },
    ),
    fc.oneof(
      { weight: 9, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.tuple(fc.nat(), fc.integer({ min: 0x80, max: 0xff })) },
    ),
  )
  .map(([text, flip]) => {
    const bytes = Buffer.from(text);
    if (flip !== null && bytes.length > 0) bytes[flip[0] % bytes.length] = flip[1];
    return bytes;
  });

/** Returns the text that reads must return; null if the value must be refused. */
function expectedText(value: Buffer): string | null {
  const text = decoded(value);
  if (text === null || !isJson(text)) return null;
  const trimmed = text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  return trimmed === 'null' ? null : trimmed;
}

/** False for text that is not JSON itself but makes the body valid JSON, such as `1,"a":2`. */
function isOneValue(value: Buffer): boolean {
  const text = decoded(value);
  return text === null || isJson(text) || !isJson(`${HEAD}${text}}`);
}

function decoded(bytes: Buffer): string | null {
  return isUtf8(bytes) ? bytes.toString('utf8') : null;
}

describe('generated values', () => {
  let service: SettingsFixture;
  const agent = new Agent({ keepAlive: true, maxSockets: WORKERS });
  beforeAll(async () => {
    service = await startSettings();
  });
  afterAll(async () => {
    agent.destroy();
    await service.close();
  });

  const send = (method: string, path: string, headers: Record<string, string>, body?: Buffer) =>
    new Promise<Answer>((resolve, reject) => {
      const sent = sendRequest(`${service.urls[0] ?? ''}${path}`, { method, agent, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') });
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });

  /** Writes and reads the value. Returns what went wrong, or null. */
  async function contradiction(worker: number, value: Buffer): Promise<string | null> {
    const name = `worker ${String(worker)}`;
    const path = settingPath('Generated', name);
    const body = Buffer.concat([Buffer.from(HEAD), value, Buffer.from('}')]);
    const written = await send('PUT', path, { ...PARTNER, 'content-type': 'application/json' }, body);
    const text = expectedText(value);
    if (text === null) return written.status === 400 ? null : `got ${String(written.status)} instead of 400`;
    const envelope = `{"subsystemName":"Generated","settingName":"${name}","settingValue":${text}}`;
    const [bare, wrapped] = [await send('GET', `${path}/value`, CUSTOMER), await send('GET', path, CUSTOMER)];
    const got = [written, bare, wrapped].map((answer) => `${String(answer.status)} ${answer.text}`);
    const wanted = [envelope, text, envelope].map((each) => `200 ${each}`);
    return JSON.stringify(got) === JSON.stringify(wanted) ? null : `was returned as ${JSON.stringify(got)}`;
  }

  it(
    'are returned byte for byte if JSON.parse accepts them, and are a 400 otherwise',
    async () => {
      const seed = Math.floor(Math.random() * 2 ** 31);
      const cases = fc.sample(values.filter(isOneValue), { numRuns: CASES, seed });
      const valid = cases.filter((value) => expectedText(value) !== null).length;
      expect(Math.min(valid, cases.length - valid)).toBeGreaterThan(0.3 * CASES);
      const wrong: string[] = [];
      let next = 0;
      const work = async (worker: number): Promise<void> => {
        for (let index = next++; index < cases.length; index = next++) {
          const value = cases[index] ?? Buffer.alloc(0);
          const why = await contradiction(worker, value);
          if (why !== null)
            wrong.push(`seed ${String(seed)}, case ${String(index)}, ${value.toString('latin1')}: ${why}`);
        }
      };
      await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)));
      expect(wrong.slice(0, 5)).toEqual([]);
      expect(next).toBeGreaterThanOrEqual(CASES);
    },
    TIMEOUT_MS,
  );
});
