import { join } from 'node:path';
import { describeMigrations } from '@platform/testing';
import { MIGRATIONS } from '../src/database-layout';

describeMigrations(join(__dirname, '../src/migrations'), MIGRATIONS, {
  // The service is stopped during this migration; see docs/decisions/0029-setting-names.md.
  FoldSettingKeys1796400000000: [
    /UPDATE settings\.setting /,
    /UPDATE settings\.setting_history/,
    /locks several tables/,
  ],
});
