import { auditSecrets, auditTraffic } from './responses-and-logs.ts';

const VALUE = '1-17-a-value-of-a-setting';
const secrets = new Map([[VALUE, 'value of a setting']]);
const findingsIn = (written: string): readonly string[] =>
  auditSecrets(secrets, new Map([['settings-a', `{"level":"info","msg":"${written}"}\n`]])).findings;

describe('auditSecrets', () => {
  it('finds a secret, plain or encoded within another text, and does not quote it', () => {
    const body = Buffer.from(JSON.stringify({ settingValue: VALUE }));
    for (const written of [VALUE, body.toString('base64'), body.toString('hex')]) {
      const [finding] = findingsIn(written);
      expect(finding).toContain('settings-a logged the value of a setting after: {"level":"info"');
      expect(finding).not.toContain(VALUE);
    }
  });

  it('finds nothing in a log without secrets', () => {
    expect(findingsIn('request completed')).toEqual([]);
  });
});

describe('auditTraffic', () => {
  it('quotes errors that were logged just before an unexpected response', () => {
    const line = (second: number, level: string) =>
      `{"level":"${level}","time":"2026-03-01T12:00:0${second}.500Z","msg":"second ${second}"}`;
    const log = [line(1, 'error'), line(3, 'warn'), line(3, 'error'), line(5, 'error')].join('\n');
    const unexpected = {
      operation: 'POST refresh',
      outcome: '500',
      during: 'upgrade',
      detail: '{}',
      at: '2026-03-01T12:00:04.000Z',
    };
    const { findings } = auditTraffic(
      { unexpected: [unexpected], unexpectedCount: 1, attempts: 9 },
      [],
      new Map([['auth-a', log]]),
    );
    expect(findings).toEqual([
      `POST refresh got 500 during upgrade at 2026-03-01T12:00:04.000Z: {}\n  auth-a logged ${line(3, 'error')}`,
    ]);
  });
});
