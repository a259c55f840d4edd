import { basicCredentials } from './introspection.controller';

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('Basic credentials', () => {
  it.each([
    ['billing:secret', 'billing', 'secret'],
    ['billing:a:b', 'billing', 'a:b'],
    ['b%3Ailling:a%2Bb+c', 'b:illing', 'a+b c'],
  ])('%s contains the key %s and the secret %s', (text, key, secret) => {
    expect(basicCredentials(basic(text))).toEqual({ key, secret });
  });

  it('are found with the scheme in any letter case', () => {
    expect(basicCredentials(basic('a:b').replace('Basic', 'basic'))).toEqual({ key: 'a', secret: 'b' });
  });

  it.each([
    undefined,
    '',
    'Basic',
    'Basic ???',
    'Bearer YTpi',
    basic('nocolon'),
    basic(':b'),
    basic('a:'),
    basic('a:%zz'),
    basic('a%00:b'),
    basic('a\u0000:b'),
    basic('a%0A:b'),
  ])('are not in %p', (header) => {
    expect(basicCredentials(header)).toBeNull();
  });
});
