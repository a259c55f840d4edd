import { newTrace, ServiceLogger, withTrace } from '../index';

function captured(level = 'info'): {
  logger: ServiceLogger;
  lines: () => Record<string, unknown>[];
  text: () => string;
} {
  let text = '';
  const sink = { write: (line: string) => void (text += line), flushSync: () => undefined };
  const lines = (): Record<string, unknown>[] =>
    text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]));
  return { logger: new ServiceLogger({ name: 'auth', level }, sink), lines, text: () => text };
}

describe('ServiceLogger', () => {
  it('writes one JSON object per line with service, level, context and trace', () => {
    const { logger, lines } = captured();
    withTrace(newTrace('a'.repeat(32)), () => logger.log('started', 'Boot'));
    expect(lines()).toMatchObject([
      { service: 'auth', level: 'info', context: 'Boot', msg: 'started', traceId: 'a'.repeat(32) },
    ]);
  });

  it('writes a bare text without context, trace or other members', () => {
    const { logger, lines } = captured();
    logger.warn('bare');
    expect(lines()).toEqual([{ level: 'warn', service: 'auth', time: expect.any(String), msg: 'bare' }]);
  });

  it('finds the error at any position', () => {
    const { logger, lines } = captured();
    logger.error(new Error('first'), 'Context');
    logger.error('while reading', new Error('second'), 'Context');
    logger.error('from Nest', 'Error: third\n    at somewhere', 'Context');
    expect(lines()).toMatchObject([
      { msg: 'first', err: { message: 'first' }, context: 'Context' },
      { msg: 'while reading', err: { message: 'second' } },
      { msg: 'from Nest', stack: expect.stringContaining('third'), context: 'Context' },
    ]);
  });

  it('hides secret members and tokens in texts', () => {
    const { logger, text } = captured();
    logger.log({
      password: 'hunter2',
      headers: { authorization: 'hunter2', cookie: 'hunter2' },
      settingValue: 'hunter2',
    });
    logger.log('sent', {
      body: 'hunter2',
      request: { sharedSecret: 'hunter2', authenticationCode: 'hunter2' },
    });
    logger.warn('got eyJhbGciOiJIUzI1NiJ9.e30.hunter2');
    expect(text()).not.toContain('hunter2');
    expect(text().match(/\[redacted\]/g)?.length).toBe(8);
  });

  it('writes nothing below its level', () => {
    const { logger, text } = captured('warn');
    logger.log('no');
    logger.debug('no');
    if (logger.logsRequests('info')) logger.request({ url: '/no' }, 'info');
    expect(text()).toBe('');
  });
});
