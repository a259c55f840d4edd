import { join } from 'node:path';
import { describeMigrations } from '@platform/testing';
import { MIGRATIONS } from '../src/database-layout';

describeMigrations(join(__dirname, '../src/migrations'), MIGRATIONS, {
  // A row for each business unit: there are few.
  BusinessUnitFacilities1800000002000: [/UPDATE task\.business_unit_changes/],
  // Only a consumer of messages locks both, and repeats a transaction that PostgreSQL ends to break a
  // deadlock.
  BusinessUnitsInAnyOrder1800000013000: [/UPDATE task\.business_units/, /locks several tables/],
  ScheduleLifecycle1800000001000: [/locks several tables/],
});
