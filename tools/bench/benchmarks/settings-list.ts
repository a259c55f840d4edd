import { makeAccessToken } from '#platform/access-token.ts';
import type { Benchmark } from '../benchmark.ts';
import { HttpLoad } from '../http-load.ts';
import { median } from '../statistics.ts';
import { runSql } from '../sql-load.ts';

const SIZES = [1, 100, 10_000, 1_000_000] as const;
const REFERENCE = 100;

const nameOf = (size: number): string => `${size.toLocaleString('en-US')} settings`;

/** The subsystem `sizeN` has N settings, all in one table. */
const fill = (size: number): string => `
  INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
  SELECT 'size${size}', 'key-' || lpad(n::text, 7, '0'), 'Size${size}', 'Key-' || lpad(n::text, 7, '0'), '{"n":' || n || '}'
  FROM generate_series(1, ${size}) AS n`;

/** A page of a list, whatever the length of the list. */
export const settingsList: Benchmark = {
  id: 'settings-list',
  title: 'GET of the first page of a subsystem, by the size of the subsystem',
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth', 'settings']);
    const { owner } = services.settings.databases.settings;
    await runSql(owner, ...SIZES.map(fill), 'VACUUM ANALYZE settings.setting');
    const load = new HttpLoad(services.programs.settings!.url, 1);
    const headers = { authorization: `Bearer ${makeAccessToken(services.settings)}` };
    const measure = (size: number) => async (seconds: number) => {
      const path = `/platform/v1/subsystems/Size${size}/settings`;
      const { latenciesMs } = await load.run(seconds, () => ({ method: 'GET', path, headers, expect: 200 }));
      return median(latenciesMs);
    };
    return {
      unit: 'ms',
      contestants: SIZES.map((size) => ({
        name: nameOf(size),
        does: `reads a page of ${Math.min(size, 100)}`,
        measure: measure(size),
      })),
      comparisons: SIZES.filter((size) => size !== REFERENCE).map((size) => ({
        title: `${nameOf(size)} : ${nameOf(REFERENCE)}`,
        of: nameOf(size),
        against: nameOf(REFERENCE),
        goal: { atMost: 1.3 },
      })),
      conditions: [
        'one connection; median latency of the page; all subsystems lie in one table of 1,010,101 settings',
      ],
      close: async () => {
        await load.close();
        await services.stop();
      },
    };
  },
};
