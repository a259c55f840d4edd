import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isReachableBy, parsePasswd } from './run-as.ts';
import { stateFolderFor } from './state-folder.ts';

const STRANGER = { uid: 65_000, gid: 65_000 };

describe('parsePasswd', () => {
  const text =
    'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n';

  it('finds an account by name', () => {
    expect(parsePasswd(text, 'nobody')).toEqual({ uid: 65534, gid: 65533 });
  });

  it('returns null for a missing account', () => {
    expect(parsePasswd(text, 'nob')).toBeNull();
  });
});

describe('isReachableBy', () => {
  it('is false if any folder of the path is closed to others', () => {
    const parent = mkdtempSync(join(tmpdir(), 'reachable-'));
    const inner = join(parent, 'open');
    mkdirSync(inner, { mode: 0o755 });
    chmodSync(parent, 0o755);
    expect(isReachableBy(join(inner, 'not-there-yet'), STRANGER)).toBe(true);
    chmodSync(parent, 0o700);
    expect(isReachableBy(inner, STRANGER)).toBe(false);
    rmSync(parent, { recursive: true });
  });
});

describe('stateFolderFor', () => {
  it('is .platform in the checkout if the servers can reach it', () => {
    expect(stateFolderFor('/srv/checkout', () => true)).toBe('/srv/checkout/.platform');
  });

  it('is a folder of its own for each checkout if they cannot', () => {
    const folders = ['/root/a', '/root/b'].map((checkout) => stateFolderFor(checkout, () => false));
    expect(new Set(folders).size).toBe(2);
    for (const folder of folders) expect(folder).toMatch(/^\/var\/tmp\/property-platform-[0-9a-f]{12}$/);
  });
});
