/* ; /* ; */ */ SELECT ';' ; -- ;
CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END;
$a$ ; $a$ \d t
E'\'' "x
