delete from ff_error_code;
