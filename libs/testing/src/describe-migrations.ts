import { readdirSync } from 'node:fs';

/** The test that every migration in `folder` is among `listed`: a bundle has no folder to search, so one that is not listed is none. */
export function describeMigrations(folder: string, listed: readonly { readonly name: string }[]): void {
  it('lists every migration that there is a file for', () => {
    const numbers = readdirSync(folder).flatMap((file) => /^(\d+)-.*\.ts$/.exec(file)?.[1] ?? []);
    const listedNumbers = listed.map(({ name }) => /\d+$/.exec(name)?.[0]);
    expect(numbers).not.toEqual([]);
    expect(listedNumbers).toEqual(expect.arrayContaining(numbers));
  });
}
