import { utf8HeaderText, windowsAccountKey } from './windows-sign-in';

describe('windowsAccountKey', () => {
  it('folds the name and keeps the realm', () => {
    expect(windowsAccountKey('Ivy.Internal@CORP.TEST', 'CORP.TEST')).toBe('ivy.internal@CORP.TEST');
    expect(windowsAccountKey('JO\u0308RG@CORP.TEST', 'CORP.TEST')).toBe('j\u00f6rg@CORP.TEST');
  });

  it.each([
    ['another realm', 'ivy@OTHER.TEST'],
    ['the realm in another case', 'ivy@corp.test'],
    ['a realm that only begins so', 'ivy@CORP.TEST.EVIL'],
    ['no realm', 'ivy'],
    ['no user', '@CORP.TEST'],
    ['a host', 'host/pc@CORP.TEST'],
    ['an administrator', 'ivy/admin@CORP.TEST'],
    ['an escaped name', 'ivy\\@CORP.TEST@CORP.TEST'],
    ['two realms', 'ivy@OTHER.TEST@CORP.TEST'],
    ['the form of Windows 2000', 'CORP\\ivy'],
    ['a list', 'ivy@CORP.TEST, eve@CORP.TEST'],
    ['a line feed', 'ivy\n@CORP.TEST'],
    ['a lone surrogate', '\ud800@CORP.TEST'],
    ['an endless name', `${'i'.repeat(257)}@CORP.TEST`],
  ])('finds no user in %s', (_, principal) => {
    expect(windowsAccountKey(principal, 'CORP.TEST')).toBeNull();
  });
});

describe('utf8HeaderText', () => {
  it('decodes UTF-8 header bytes', () => {
    expect(utf8HeaderText(Buffer.from('jörg@CORP.TEST').toString('latin1'))).toBe('jörg@CORP.TEST');
  });

  it('refuses other encodings', () => {
    expect(utf8HeaderText('j\u00f6rg')).toBeNull();
  });
});
