import {
  IdentityProviderUnavailableError,
  describeProviderError,
  isProviderUnavailable,
} from './provider-metadata.client';

const libraryError = (members: object, cause?: unknown): Error =>
  Object.assign(new Error('library', { cause }), members);

describe('isProviderUnavailable', () => {
  it.each<[string, unknown]>([
    ['the error itself', new IdentityProviderUnavailableError('down')],
    ['a wrapped one', libraryError({}, libraryError({}, new IdentityProviderUnavailableError('down')))],
    ['a response that is not OAuth', libraryError({ code: 'OAUTH_RESPONSE_IS_NOT_JSON' })],
    ['a client refused', libraryError({ code: 'OAUTH_RESPONSE_BODY_ERROR', error: 'invalid_client' })],
  ])('is true for %s', (_, error) => {
    expect(isProviderUnavailable(error)).toBe(true);
  });

  it.each<[string, unknown]>([
    ['a code refused', libraryError({ code: 'OAUTH_RESPONSE_BODY_ERROR', error: 'invalid_grant' })],
    [
      'a client error reported by the browser',
      libraryError({ code: 'OAUTH_AUTHORIZATION_RESPONSE_ERROR', error: 'invalid_client' }),
    ],
    ['a wrong claim', libraryError({ code: 'OAUTH_JWT_CLAIM_COMPARISON_FAILED' })],
    ['no error at all', 'x'],
  ])('is false for %s', (_, error) => {
    expect(isProviderUnavailable(error)).toBe(false);
  });
});

describe('describeProviderError', () => {
  it('names the kind of error without its causes', () => {
    const error = libraryError({ code: 'C', error: 'invalid_grant' }, { claims: { secret: 'hunter2' } });
    expect(describeProviderError(error)).toBe('library, C, invalid_grant');
    expect(describeProviderError(libraryError({ error: 'Hunter 2' }))).toBe('library');
    expect(describeProviderError('hunter2')).toBe('unknown error');
  });
});
