import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scanRecording } from './secret-scan';

const TOKEN = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyaWQ6MSJ9.${'c2lnbmF0dXJl'.repeat(3)}`;

describe('the scan of a recorded run', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'recording-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = (name: string, text: string): void => appendFileSync(join(folder, name), `${text}\n`);
  const exchange = {
    request: {
      url: '/auth/token/user',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'ivy', password: 'the-password' }),
    },
    response: {
      url: '/auth/token/user',
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: JSON.stringify({ accessToken: TOKEN }),
    },
  };

  it('passes clean logs, and reports how much it scanned', () => {
    write('1.traffic', JSON.stringify(exchange));
    write('1.secrets', JSON.stringify(['a-signing-key', 'key']));
    write('service.log', '{"msg":"request","url":"/auth/token/user"}');
    expect(scanRecording(folder)).toEqual({ secrets: 3, programs: 1, characters: 43 });
  });

  it.each([
    ['password of a request', '{"body":"the-password"}', 'password in service.log after: {"body":"'],
    ['token of a response', `Bearer ${TOKEN}`, 'accessToken in service.log after: Bearer eyJ'],
    ['remembered key', 'key=a-signing-key', 'key in service.log after: key='],
  ])('fails for a %s, without repeating it', (_, line, place) => {
    write('1.traffic', JSON.stringify(exchange));
    write('2.secrets', JSON.stringify(['a-signing-key', 'key']));
    write('service.log', line);
    expect(() => scanRecording(folder)).toThrow(place);
    expect(() => scanRecording(folder)).not.toThrow(/the-password|c2lnbmF0dXJl|a-signing-key/);
  });

  it('fails if nothing was logged', () => {
    write('1.traffic', JSON.stringify(exchange));
    expect(() => scanRecording(folder)).toThrow('no log was recorded');
  });
});
