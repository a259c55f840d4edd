import { describeSchemaDrift } from '@platform/testing';
import { MIGRATIONS, SCHEMA } from '../src/database-layout';
import { HistoryEntryEntity } from '../src/settings/history-entry.entity';
import { SettingEntity } from '../src/settings/setting.entity';

describeSchemaDrift({
  schema: SCHEMA,
  entities: [SettingEntity, HistoryEntryEntity],
  migrations: MIGRATIONS,
});
