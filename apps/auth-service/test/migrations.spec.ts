import { join } from 'node:path';
import { describeMigrations } from '@platform/testing';
import { SCHEMAS } from '../src/migrations/schemas';

describeMigrations(
  join(__dirname, '../src/migrations'),
  SCHEMAS.flatMap(({ settings }) => settings.migrations),
  {
    LimitApplications1796200000200: [/locks several tables/],
    AddPersonaOfAuthority1796200000000: [/locks several tables/],
  },
);
