import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeWhole } from './write-whole';

describe('writeWhole', () => {
  const folder = mkdtempSync(join(tmpdir(), 'write-whole-'));
  const file = join(folder, 'deep/main.js');
  const write = async (text: string): Promise<number> => {
    await writeWhole(file, Buffer.from(text));
    return statSync(file).ino;
  };

  afterAll(() => rmSync(folder, { recursive: true }));

  it('keeps a file that has this content, and replaces any other atomically', async () => {
    const first = await write('one');
    expect(await write('one')).toBe(first);
    expect(await write('two')).not.toBe(first);
    expect(readFileSync(file, 'utf8')).toBe('two');
    expect(readdirSync(join(folder, 'deep'))).toEqual(['main.js']);
  });
});
