import { MemoryStore } from './identity-provider.neighbour';

describe('MemoryStore', () => {
  it('finds by id and by uid until it is told to forget', async () => {
    const store = new MemoryStore();
    await store.upsert('a', { uid: 'u', kind: 'Session' }, 60);
    expect(await store.find('a')).toMatchObject({ kind: 'Session' });
    expect(await store.findByUid('u')).toMatchObject({ kind: 'Session' });
    await store.destroy('a');
    expect(await store.find('a')).toBeUndefined();
  });

  it('marks what was consumed and drops everything of a revoked grant', async () => {
    const store = new MemoryStore();
    await store.upsert('code', { grantId: 'g' }, 60);
    await store.upsert('token', { grantId: 'g' }, undefined);
    await store.consume('code');
    expect((await store.find('code'))?.consumed).toEqual(expect.any(Number));
    await store.revokeByGrantId('g');
    expect(await store.find('code')).toBeUndefined();
    expect(await store.find('token')).toBeUndefined();
  });

  it('gives back nothing that has expired', async () => {
    const store = new MemoryStore();
    await store.upsert('a', {}, 0);
    expect(await store.find('a')).toBeUndefined();
  });
});
