import { join } from 'node:path';
import { describeMigrations } from '@platform/testing';
import { MIGRATIONS } from '../src/database-layout';

describeMigrations(join(__dirname, '../src/migrations'), MIGRATIONS);
