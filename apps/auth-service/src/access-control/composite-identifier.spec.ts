import { nameInIdentifier } from './access-control.dto';

describe('composite identifiers', () => {
  it('hold the name after the second pair of tildes', () => {
    expect(nameInIdentifier('SecurityEditor~~GroupName~~Dispatch', 'GroupName')).toBe('Dispatch');
    expect(nameInIdentifier('SecurityEditor~~AccessPointName~~A~~B', 'AccessPointName')).toBe('A~~B');
  });

  it('hold the name in Unicode normal form C, however it was sent', () => {
    expect(nameInIdentifier('SecurityEditor~~GroupName~~I\u0307zmir', 'GroupName')).toBe('İzmir');
  });

  it.each([
    'Dispatch',
    'SecurityEditor~~GroupName',
    'SecurityEditor~~GroupName~~',
    'SecurityEditor~~AccessPointName~~Dispatch',
    'securityeditor~~GroupName~~Dispatch',
    'SecurityEditor~GroupName~Dispatch',
    'SecurityEditor~~GroupName~~a\u0000b',
  ])('are not %p', (identifier) => {
    expect(nameInIdentifier(identifier, 'GroupName')).toBeNull();
  });
});
