import { QueryFailedError } from 'typeorm';
import {
  DatabaseUnavailableError,
  isConnectionError,
  isSerializationFailure,
  isServerFault,
  isStatementTimeout,
  isUniqueViolation,
} from './index';

const withCode = (code: string, message = 'failed'): Error => Object.assign(new Error(message), { code });
const wrapped = (error: Error): QueryFailedError => new QueryFailedError('SELECT 1', [], error);

describe('isConnectionError', () => {
  it.each([
    '57P01',
    '57P02',
    '57P03',
    '08000',
    '08006',
    '08P01',
    '53300',
    // Not the statement's fault: a server that is not (or no longer) the primary, a full disk, no memory.
    '25006',
    '53100',
    '53200',
    // The server ended the session, because it was idle, within a transaction or outside one.
    '25P03',
    '57P05',
    'ECONNREFUSED',
    'ECONNRESET',
    'ENOTFOUND',
    'EPIPE',
  ])('is true for %s, wrapped or not', (code) => {
    expect(isConnectionError(withCode(code))).toBe(true);
    expect(isConnectionError(wrapped(withCode(code)))).toBe(true);
  });

  it.each([
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'Connection terminated',
    'timeout exceeded when trying to connect',
    'Query read timeout',
    'Client has encountered a connection error and is not queryable',
    'Cannot use a pool after calling end on the pool',
  ])('is true for "%s"', (message) => {
    expect(isConnectionError(new Error(message))).toBe(true);
    expect(isConnectionError(wrapped(new Error(message)))).toBe(true);
  });

  it('is true when every address of a host failed', () => {
    expect(isConnectionError(new AggregateError([withCode('ECONNREFUSED'), withCode('EHOSTUNREACH')]))).toBe(
      true,
    );
  });

  it('is true for its own error', () => {
    expect(isConnectionError(new DatabaseUnavailableError('gone'))).toBe(true);
  });

  it.each(['23505', '40001', '42P01', '28P01', '3D000', '57014', '22P02'])('is false for %s', (code) => {
    expect(isConnectionError(wrapped(withCode(code)))).toBe(false);
  });

  it.each([
    null,
    undefined,
    'ECONNREFUSED',
    { code: 'ECONNREFUSED' },
    new Error('other'),
    new AggregateError([]),
  ])('is false for %p', (value) => {
    expect(isConnectionError(value)).toBe(false);
  });
});

describe('other error predicates', () => {
  it('match by code, wrapped or not', () => {
    expect(
      [withCode('40001'), wrapped(withCode('40P01')), withCode('23505')].map(isSerializationFailure),
    ).toEqual([true, true, false]);
    expect(
      [withCode('57014'), wrapped(withCode('55P03')), withCode('40001')].map(isStatementTimeout),
    ).toEqual([true, true, false]);
    expect([withCode('58030'), wrapped(withCode('XX001')), withCode('23514')].map(isServerFault)).toEqual([
      true,
      true,
      false,
    ]);
    const duplicate = wrapped(Object.assign(withCode('23505'), { constraint: 'setting_pkey' }));
    expect([
      isUniqueViolation(duplicate),
      isUniqueViolation(duplicate, 'setting_pkey'),
      isUniqueViolation(duplicate, 'x'),
    ]).toEqual([true, true, false]);
  });
});
