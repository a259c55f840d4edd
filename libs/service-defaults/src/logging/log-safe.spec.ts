import { hideTokens, logSafeError, logSafeUrl } from '../index';

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln';

describe('logSafeUrl', () => {
  it.each([
    ['/a/b', '/a/b'],
    ['/a?token=secret&pageSize=5', '/a?token&pageSize'],
    ['/a?', '/a?'],
    ['/a?justtext', '/a?justtext'],
    [`/auth/revocations/jti/${JWT}`, '/auth/revocations/jti/[redacted]'],
    [`/a?${JWT}=1`, '/a?[redacted]'],
  ])('shows %s as %s', (url, shown) => {
    expect(logSafeUrl(url)).toBe(shown);
  });

  it('truncates a long URL to 1,024 characters', () => {
    expect(logSafeUrl(`/${'a'.repeat(5_000)}`)).toHaveLength(1_024);
  });
});

describe('hideTokens', () => {
  it('removes tokens and the credentials of URLs', () => {
    expect(hideTokens(`got ${JWT}, then`)).toBe('got [redacted], then');
    expect(hideTokens('connect postgres://app:pw@db:5432/x failed')).toBe(
      'connect postgres://[redacted]@db:5432/x failed',
    );
    expect(hideTokens('see https://example.org/a@b')).toBe('see https://example.org/a@b');
  });
});

describe('logSafeError', () => {
  it('drops the members that libraries attach', () => {
    const error = Object.assign(new Error('failed'), {
      code: '23505',
      query: 'INSERT …',
      parameters: ['hunter2'],
      detail: 'Key (name)=(hunter2) already exists.',
      config: { headers: { authorization: 'hunter2' } },
    });
    const logged = logSafeError(error);
    expect(logged).toMatchObject({ type: 'Error', message: 'failed', code: '23505' });
    expect(JSON.stringify(logged)).not.toContain('hunter2');
  });

  it('hides the input that PostgreSQL quotes, in the stack too', () => {
    const error = Object.assign(new Error('invalid input syntax for type json: "hunter2 "quoted""'), {
      code: '22P02',
    });
    expect(JSON.stringify(logSafeError(error))).not.toContain('hunter2');
  });

  it('follows causes and the parts of an aggregate, a few levels deep', () => {
    const looped = new Error('loop');
    looped.cause = looped;
    expect(JSON.stringify(logSafeError(looped)).match(/"loop"/g)).toHaveLength(5);
    const aggregate = new AggregateError([new Error('one'), new Error('two')], 'both');
    expect(logSafeError(aggregate).errors?.map(({ message }) => message)).toEqual(['one', 'two']);
  });

  it('accepts any thrown value', () => {
    expect(logSafeError('text')).toEqual({ type: 'string', message: 'text' });
    expect(logSafeError(undefined)).toEqual({ type: 'undefined', message: 'undefined' });
  });
});
